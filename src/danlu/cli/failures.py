"""What ends a command early: one clear line for whoever typed it."""

from __future__ import annotations


class CommandError(Exception):
    """Something the user can mend; the message is one clear line in their language."""

    exit_code = 1


class UsageError(CommandError):
    """The command line asks for something that cannot be."""

    exit_code = 2
