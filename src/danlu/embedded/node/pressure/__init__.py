"""What pods use, and what goes first when memory or disk runs short."""
