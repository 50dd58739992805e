"""How long generated kernels take: their instruction streams on the pipes of a described device."""
