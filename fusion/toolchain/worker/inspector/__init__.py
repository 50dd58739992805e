# pyright: basic
"""Looking at a user's file: executed once with stand-ins for torch and the JIT, it gives its kernels as TIR, and as JSON with source lines.

Nothing here is imported before a job asks for it, so that the worker itself stays as it is.
"""
