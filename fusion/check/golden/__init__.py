"""What a kernel should compute: its TileLang statements executed one after the other with numpy, without the compiler.

One block after the other; in a block every statement runs to its end before the next, once for the Cube and once for each Vector core. This
is what the author wrote; whatever the compiler's transformations and the device's pipes make of it must give the same numbers.
"""

from fusion.check.golden.machine import Golden, NotInterpreted, interpret

__all__ = ["Golden", "NotInterpreted", "interpret"]
