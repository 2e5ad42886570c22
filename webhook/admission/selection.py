"""What is wrong with a webhook configuration: it selects the wrong objects, or another server.

A site may change its copy of the manifests. So a difference counts only if the API server would
not call this webhook where it should, or would call it for pods that did not opt in.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from webhook.admission.registration import CONFIGURATIONS, Registration
from webhook.admission.review import mapping_at, string_at
from webhook.model.annotations import ENABLE_ANNOTATION
from webhook.model.facts import OPT_IN_LABEL

SELECTS_TOO_LITTLE = "SelectsTooLittle"
SELECTS_TOO_MUCH = "SelectsTooMuch"
OTHER_SERVICE = "OtherService"


class Mistake(NamedTuple):
    """A mistake in a webhook configuration."""

    #: A word in CamelCase.
    reason: str
    #: What the webhook configuration does, as a sentence without its subject and period.
    text: str


class Service(NamedTuple):
    """The Service of this webhook, and the path of one of its webhooks."""

    namespace: str
    name: str
    path: str

    def __str__(self) -> str:
        return f"{self.path or '/'} of Service {self.name} in namespace {self.namespace}"


def mutating_webhook_mistakes(registration: Registration) -> Iterator[Mistake]:
    """Yield what the webhook for pods selects by mistake, or does not select."""
    if not registration.selects_creation_of_pods:
        yield Mistake(SELECTS_TOO_LITTLE, "has no rule for the creation of pods")
    opt_ins = [item for item in registration.namespace_selector if item.key == OPT_IN_LABEL]
    if not all(item.met({OPT_IN_LABEL: "true"}) for item in opt_ins):
        yield Mistake(SELECTS_TOO_LITTLE, f'excludes namespaces with {OPT_IN_LABEL}: "true"')
    if not opt_ins:
        text = (
            f"has no namespaceSelector that requires {OPT_IN_LABEL}, so it selects all namespaces"
        )
        yield Mistake(SELECTS_TOO_MUCH, text)
    asks = any(ENABLE_ANNOTATION in expression for _, expression in registration.conditions)
    if not asks and not registration.object_selector:
        text = (
            f"has no matchCondition on {ENABLE_ANNOTATION}, so it selects pods that did not opt in"
        )
        yield Mistake(SELECTS_TOO_MUCH, text)


def validating_webhook_mistakes(registration: Registration) -> Iterator[Mistake]:
    """Yield which changes of the FabricConfiguration the webhook for it does not select."""
    for operation in ("CREATE", "UPDATE"):
        if not any(rule.selects(operation, CONFIGURATIONS) for rule in registration.rules):
            text = f"has no rule for {operation} of fabricconfigurations"
            yield Mistake(SELECTS_TOO_LITTLE, text)
    if registration.object_selector:
        yield Mistake(SELECTS_TOO_LITTLE, "has an objectSelector, which excludes objects by labels")


def service_mistakes(registration: Registration, expected: Service) -> Iterator[Mistake]:
    """Yield a mistake if the API server calls another Service; a URL is accepted."""
    service = mapping_at(mapping_at(registration.webhook, "clientConfig"), "service")
    actual = _service(service)
    if service and actual != expected:
        yield Mistake(OTHER_SERVICE, f"calls {actual} instead of {expected}")


def _service(service: Mapping[str, object]) -> Service:
    return Service(*(string_at(service, key) for key in ("namespace", "name", "path")))


def ca_bundle_of(registration: Registration) -> str:
    """Return the caBundle in base64; "" without one."""
    return string_at(mapping_at(registration.webhook, "clientConfig"), "caBundle")


def is_called_by_url(registration: Registration) -> bool:
    """Return whether the API server calls a URL, perhaps with a certificate of a public CA."""
    return bool(string_at(mapping_at(registration.webhook, "clientConfig"), "url"))
