"""The API server: from bytes on a socket to an object in the store and back, for kinds that it is given.

It runs nothing: no controller, scheduler or node is imported here. What is particular to a kind stands in its
`ServedKind` (`served.py`), what is particular to a request in its `Call` (`request.py`).
"""
