"""What Python and the pages agree on beside the tables: scripts/generate-diagnosis writes it into causes.json, too."""

from __future__ import annotations

LONGEST = 4096
"""Characters of a message that are read: Kubernetes cuts the messages of events after a quarter of that; what follows
is a user's value, which refusals quote however long. JavaScript has no RE2: its patterns cost more than their text."""

NESTED_CAUSES = 4  # causes within causes: anybody may write an annotation that never ends
NESTED_MESSAGES = 16  # messages within messages: `Error: Error: …` may be as long as anybody likes
FOREIGN = ("message", "why")  # parameters that may hold the words of a component of Kubernetes

# Conditions that tell of trouble when they have this status, in the order in which they are asked.
TELLING = (
    ("Failed", "True"), ("Blocked", "True"), ("ReplicaFailure", "True"), ("Running", "False"), ("Ready", "False"),
    ("Initialized", "False"), ("Created", "False"),
)  # fmt: skip
SUBSTITUTED = "ImageSubstituted"  # the condition, and the reason of events, of what runs in another image than its own
IDLE = "DL-IDLE-SUSPENDED"  # of what nobody used: whoever comes back reads that nobody stopped it by hand
OF_PROGRAMS = ("DL-OOM", "DL-COMMAND", "DL-EXIT", "DL-CRASH", "DL-KILLED")  # a container ended: its log tells more
