"""Is what was generated right: plans run on the CPU, compared with the golden, with every order and memory check on."""
