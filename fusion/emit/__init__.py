"""From a plan to TileLang-Ascend source: kernels, host wrapper and their tests."""
