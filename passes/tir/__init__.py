"""Passes on TIR that run inside the compiler's own pipeline: each file has `run(mod, options) -> (mod, findings)`.

The files are sent to the compiler's worker as text and import only tvm; this package is not imported there.
"""
