"""The audit log: who asked for what, and what came of it, as audit.k8s.io/v1 Events, one JSON object a line.

`policy.py` says what is recorded of which request, `events.py` makes the lines, `log.py` writes and rotates the file.
A request pays for finding its rule and for a queue; lines are made and written by a thread of their own.
"""
