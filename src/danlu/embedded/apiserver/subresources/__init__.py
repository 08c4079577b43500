"""What lies behind an object's own path: log, exec, scale, binding and so on, one file each."""
