"""MutatingAdmissionPolicies: what is added to writes."""

from __future__ import annotations

from danlu.embedded.builtin.admissionregistration import admissionpolicies as policies
from danlu.meta.wellknown import MUTATING_POLICY

SERVED = policies.served(
    MUTATING_POLICY,
    columns=policies.policy_columns(policies.counted_in("mutations", "Mutations")),
    default=policies.default_policy,
    validate=policies.validate_mutating,
)
