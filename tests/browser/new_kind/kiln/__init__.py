"""A throw-away kind: one pod that fires something."""
