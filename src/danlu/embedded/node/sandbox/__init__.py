"""A container as a process: spawner, shim, namespaces. Modules here run in a bare interpreter: see `bootstrap`."""
