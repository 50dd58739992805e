"""Core of fusion-plan: graph, plan, planner, emission, toolchain, simulator, report and command line."""
