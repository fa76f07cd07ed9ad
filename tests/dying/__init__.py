"""Jobs that are killed with SIGKILL at each of their steps, then done again."""
