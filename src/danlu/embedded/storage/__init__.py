"""Where objects live: in memory for reading, in SQLite before a write is acknowledged.

Invariants (checked by tests/embedded/storage):
1. A reader, a lister or a watcher never sees a write that is not durable.
2. A write builds on `latest`, which includes writes that are still on their way to the disk.
3. Revisions are one global counter. Changes become visible in the order of their revisions.
4. A watch that starts at revision R gets every change after R, once, in order; or an Expired error, never a gap.
5. When the disk refuses, every write in flight fails, and memory shows what the disk holds.
6. What was acknowledged is there after a start, or it is said what is not. No revision is given out twice.
"""

from danlu.embedded.storage.errors import DataDirectoryError
from danlu.embedded.storage.quarantine import Finding, Quarantine
from danlu.embedded.storage.space import Space
from danlu.embedded.storage.sqlite import SqliteJournal
from danlu.embedded.storage.store import Store
from danlu.embedded.storage.stored import Stored
from danlu.embedded.storage.watchcache import Change, Subscription

__all__ = [
    "Change",
    "DataDirectoryError",
    "Finding",
    "Quarantine",
    "Space",
    "SqliteJournal",
    "Store",
    "Stored",
    "Subscription",
]
