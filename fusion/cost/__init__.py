"""How long a kernel is expected to take: the planner's estimate, and the device descriptions behind it."""
