"""batch/v1 Job: pods are run until enough of them have succeeded, or too many have failed.

`controller` does the I/O, with `scaling` and `tracking`; `sync` counts and finds the end, `jobspec` decides on single
pods, `indexes` counts completion indexes. The last three are pure.

Invariants of counting: a pod is counted exactly once. It carries a finalizer from birth; when it has finished, its uid
goes into `status.uncountedTerminatedPods` first, then the finalizer goes, then it is counted and the uid leaves the
list in one write. Whatever moment the process dies at, the next one finds where to go on.
"""

from danlu.embedded.controllers.job.controller import make

__all__ = ["make"]
