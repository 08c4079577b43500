"""A throw-away kind of job: a launcher that reaches its workers by ssh, as MPI's does."""
