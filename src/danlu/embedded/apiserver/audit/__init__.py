"""The audit log: who asked for what, and what came of it, as audit.k8s.io/v1 Events, one JSON object a line.

`auditpolicy.py` says what is recorded of which request, `events.py` makes the lines, `auditlog.py` writes and rotates
files.
A request pays for finding its rule and for a queue; lines are made and written by a thread of their own.
"""
