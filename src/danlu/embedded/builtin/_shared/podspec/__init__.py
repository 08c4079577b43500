"""Pod specs and pod templates: their defaults and their validation, in Kubernetes' own words.

Pods, Jobs, Deployments and every other kind with a template share this package. All functions work on plain
dicts whose JSON types the schema has already checked; defaulting works in place, validation changes nothing.

Defaulting is idempotent, so a hook may call it again on an object that already went through it.
"""

from __future__ import annotations

from danlu.embedded.builtin._shared.podspec.defaulting import (
    default_claim_spec,
    default_pod,
    default_pod_spec,
    default_pod_template,
)
from danlu.embedded.builtin._shared.podspec.placementrules import merge_matched_keys
from danlu.embedded.builtin._shared.podspec.validation import validate_pod_spec, validate_pod_template
from danlu.embedded.builtin._shared.podspec.warnings import pod_warnings
from danlu.meta.qos import quality_of_service

__all__ = [
    "default_claim_spec",
    "default_pod",
    "default_pod_spec",
    "default_pod_template",
    "merge_matched_keys",
    "pod_warnings",
    "quality_of_service",
    "validate_pod_spec",
    "validate_pod_template",
]
