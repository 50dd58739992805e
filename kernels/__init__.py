"""Operators: one family a file."""
