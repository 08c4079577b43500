"""Commands that keep what is stored safe and whole."""
