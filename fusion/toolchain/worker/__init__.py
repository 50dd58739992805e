"""The half of the toolchain that runs inside the compiler's own Python: standard library and tilelang only."""
