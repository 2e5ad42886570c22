"""The two webhook configurations of an installation, as they should be.

Replicas compare them for the condition `Called`, and `rdma-webhook check-install` for a person.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import NamedTuple, Protocol

from webhook.admission.registration import Registration, registrations_named
from webhook.admission.selection import (
    Mistake,
    Service,
    mutating_webhook_mistakes,
    service_mistakes,
    validating_webhook_mistakes,
)

#: The paths of the webhooks for pods and for FabricConfigurations.
MUTATE_PATH, VALIDATE_PATH = "/mutate", "/validate"
NO_CONFIGURATION = "NoWebhookConfiguration"


class ConfigurationName(Protocol):
    """The name of a webhook configuration and of the webhook in it; str() gives kind and name."""

    @property
    def webhook(self) -> str:
        """The name of the webhook."""

    @property
    def path(self) -> str:
        """The path of the object."""


class ExpectedRegistration(NamedTuple):
    """One of the two webhook configurations, as it should be."""

    #: The value of the metric's label: mutating or validating.
    label: str
    #: What the API server sends to the webhook: pods or FabricConfigurations.
    objects: str
    configuration: ConfigurationName
    service: Service
    #: Yields what it selects by mistake.
    mistakes: Callable[[Registration], Iterator[Mistake]]

    def registration(self, document: Mapping[str, object]) -> Registration | None:
        """Return the webhook in the stored webhook configuration; None if it is not there."""
        return next(iter(registrations_named(self.configuration.webhook, (document,))), None)


def expected_registrations(
    pods: ConfigurationName, fabrics: ConfigurationName, namespace: str, service: str
) -> tuple[ExpectedRegistration, ExpectedRegistration]:
    """Return what an installation with these names should have."""
    service_with = partial(Service, namespace, service)
    return (
        ExpectedRegistration(
            "mutating", "pods", pods, service_with(MUTATE_PATH), mutating_webhook_mistakes
        ),
        ExpectedRegistration(
            "validating",
            "FabricConfigurations",
            fabrics,
            service_with(VALIDATE_PATH),
            validating_webhook_mistakes,
        ),
    )


def registration_mistakes(
    expected: ExpectedRegistration, document: Mapping[str, object] | None
) -> Iterator[Mistake]:
    """Yield what is wrong with a stored webhook configuration, apart from its `caBundle`."""
    if document is None:
        text = f"does not exist, so the API server does not send {expected.objects} to the webhook"
        yield Mistake(NO_CONFIGURATION, text)
        return
    registration = expected.registration(document)
    if registration is None:
        yield Mistake(NO_CONFIGURATION, f"has no webhook {expected.configuration.webhook}")
        return
    yield from expected.mistakes(registration)
    yield from service_mistakes(registration, expected.service)
