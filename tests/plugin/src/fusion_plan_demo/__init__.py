"""A pass of one's own, in a distribution of its own."""
