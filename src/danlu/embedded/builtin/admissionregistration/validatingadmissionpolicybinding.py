"""ValidatingAdmissionPolicyBindings: where a policy is in force, and what a failure does."""

from __future__ import annotations

from danlu.embedded.builtin.admissionregistration import admissionpolicies as policies
from danlu.meta.wellknown import VALIDATING_POLICY_BINDING

SERVED = policies.served(
    VALIDATING_POLICY_BINDING,
    columns=policies.BINDING_COLUMNS,
    default=policies.default_binding,
    validate=policies.validate_validating_binding,
)
