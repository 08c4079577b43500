"""What is done to `danlu up` for hours, by `scripts/torture`, and for a minute by the tests."""
