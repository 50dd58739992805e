"""Timelines as pictures: a self-contained page, and traces for Perfetto and Chrome."""
