"""The four patches of the Kubernetes API, and the field ownership that every write keeps.

All are pure: nothing given is changed, but for `track_update`, which writes `metadata.managedFields` of the new object.
"""

from __future__ import annotations

from danlu.meta.patch.managed import track_update
from danlu.meta.patch.rfc6902 import json_patch
from danlu.meta.patch.rfc7386 import merge_patch
from danlu.meta.patch.serversideapply import apply
from danlu.meta.patch.strategic import strategic_merge_patch

__all__ = ["apply", "json_patch", "merge_patch", "strategic_merge_patch", "track_update"]
