"""MutatingWebhookConfigurations: programs that may change writes."""

from __future__ import annotations

from danlu.embedded.builtin.admissionregistration import webhookconfigurations as webhooks
from danlu.meta.wellknown import MUTATING_WEBHOOKS

SERVED = webhooks.served(MUTATING_WEBHOOKS, default=webhooks.default_mutating)
