"""Commands about the danlu of this machine."""
