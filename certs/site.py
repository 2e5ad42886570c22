"""Where in a cluster a webhook lives."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """The names of everything that certificates have to do with."""

    namespace: str
    service: str
    #: The Secret of the CA, in that namespace.
    ca_secret: str
    #: The MutatingWebhookConfiguration, and the webhook in it, whose `caBundle` is ours.
    configuration: str
    webhook: str
