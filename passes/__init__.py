"""Rewrites of graphs, plans and TIR: one pass a file."""
