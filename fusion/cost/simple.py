"""The names under which planner and emission know the estimate."""

from fusion.cost.host import host_us
from fusion.cost.model import KernelCost, estimate

__all__ = ["KernelCost", "estimate", "host_us"]
