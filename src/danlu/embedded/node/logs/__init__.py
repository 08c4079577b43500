"""What containers print: written by the shim, read by the node."""
