"""How long a kernel is expected to take: the planner's estimate, from the same device descriptions as the timeline."""
