"""The Pod Security Standards: what a pod may ask of its node at the levels privileged, baseline and restricted. Pure.

`policy` reads a namespace's labels, `baseline` and `restricted` hold one function for each check, by the version from
which on it holds, and `evaluate` puts them together. Reasons and details are in Kubernetes' own words.
"""

from danlu.meta.podsecurity.evaluation import evaluate, is_significant_update
from danlu.meta.podsecurity.namespacelevel import (
    BASELINE,
    PREFIX,
    PRIVILEGED,
    RESTRICTED,
    LevelVersion,
    PodSecurityPolicy,
    policy_of,
    strictness,
)
from danlu.meta.podsecurity.violations import Violation, detailed, reasons

__all__ = [
    "BASELINE",
    "PREFIX",
    "PRIVILEGED",
    "RESTRICTED",
    "LevelVersion",
    "PodSecurityPolicy",
    "Violation",
    "detailed",
    "evaluate",
    "is_significant_update",
    "policy_of",
    "reasons",
    "strictness",
]
