"""What can be wrong with a data directory."""


class DataDirectoryError(Exception):
    """The data directory cannot be used; the message says why and what to do."""
