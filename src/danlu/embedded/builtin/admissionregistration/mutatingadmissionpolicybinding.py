"""MutatingAdmissionPolicyBindings: where a policy is in force."""

from __future__ import annotations

from danlu.embedded.builtin.admissionregistration import admissionpolicies as policies
from danlu.meta.wellknown import MUTATING_POLICY_BINDING

SERVED = policies.served(
    MUTATING_POLICY_BINDING,
    columns=policies.BINDING_COLUMNS,
    default=policies.default_binding,
    validate=policies.validate_binding,
)
