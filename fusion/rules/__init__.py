"""What the compiler and the device demand of a kernel, as pure functions: the planner's legality and `fusion-plan check` both call them.

names: which GM buffers get flags. handoffs: order, counts and flags of what crosses Cube and Vector. memory: bytes and alignment.
"""
