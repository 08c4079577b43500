"""ValidatingWebhookConfigurations: programs that may refuse writes."""

from __future__ import annotations

from danlu.embedded.builtin.admissionregistration import webhookconfigurations as webhooks
from danlu.meta.wellknown import VALIDATING_WEBHOOKS

SERVED = webhooks.served(VALIDATING_WEBHOOKS, default=webhooks.default)
