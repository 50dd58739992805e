"""Plans of one operator side by side: their timelines, what is best, and why."""
