"""One installation in a cluster: its names, and the interface of its API server."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

#: An object as the API server returns it, in JSON types.
Object = dict[str, Any]


class Api(Protocol):
    """An API server. Every method blocks, and raises ApiError if there is no usable answer."""

    def read(self, path: str) -> Object | None:
        """Return the object at a path; None if it does not exist."""

    def create(self, path: str, body: Object) -> bool:
        """Create an object in a collection; False if its name is already taken."""

    def replace(self, path: str, body: Object) -> bool:
        """Replace an object; False if `body` has an outdated resourceVersion."""

    def apply(self, path: str, body: Object) -> bool:
        """Apply (server-side, with force) the fields of `body`, and own them.

        False if `body` has a different uid from the object, or an outdated resourceVersion.
        """


class Watch(Protocol):
    """A watch of an installation's objects, so that they need not be read all the time."""

    def start(self, changed: Callable[[], None]) -> None:
        """Begin; `changed` is called, in any thread, after each change.

        It is also called each time the watch becomes current again.
        """

    def stop(self) -> None:
        """Stop, without waiting for the watch to end."""

    @property
    def current(self) -> bool:
        """Whether a change would be reported now; otherwise one may have been missed."""


#: The API group of webhook configurations.
ADMISSION = "admissionregistration.k8s.io/v1"


@dataclass(frozen=True, slots=True, kw_only=True)
class WebhookConfiguration:
    """A webhook configuration, and the webhook in it, whose `caBundle` is managed."""

    #: MutatingWebhookConfiguration or ValidatingWebhookConfiguration.
    kind: str
    name: str
    #: The name of the webhook in it.
    webhook: str

    def __str__(self) -> str:
        return f"{self.kind} {self.name}"

    @property
    def path(self) -> str:
        """The path of the object."""
        return f"/apis/{ADMISSION}/{self.kind.lower()}s/{self.name}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Installation:
    """The names of the objects that certificates depend on."""

    namespace: str
    service: str
    #: The Secret of the CAs, in that namespace.
    ca_secret: str
    #: They make API servers call the Service; the admission of pods depends on the first.
    webhook_configurations: tuple[WebhookConfiguration, ...]

    @property
    def server_name(self) -> str:
        """The name that the API server verifies when it calls the Service."""
        return server_name(self.service, self.namespace)

    @property
    def dns_names(self) -> tuple[str, ...]:
        """The DNS names of the Service; all but the first are for people and probes."""
        name, short = self.server_name, f"{self.service}.{self.namespace}"
        return (name, f"{name}.cluster.local", short, self.service)


def server_name(service: str, namespace: str) -> str:
    """Return the name that the API server verifies when it calls a Service."""
    return f"{service}.{namespace}.svc"
