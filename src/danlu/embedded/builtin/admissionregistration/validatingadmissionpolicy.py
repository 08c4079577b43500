"""ValidatingAdmissionPolicies: what writes must fulfil."""

from __future__ import annotations

from danlu.embedded.builtin._shared.hooks import keep_all_but_status
from danlu.embedded.builtin.admissionregistration import admissionpolicies as policies
from danlu.meta.wellknown import VALIDATING_POLICY

SERVED = policies.served(
    VALIDATING_POLICY,
    columns=policies.policy_columns(policies.counted_in("validations", "Validations")),
    default=policies.default_policy,
    validate=policies.validate_validating,
    prepare_status=keep_all_but_status,
    has_status=True,
)
