"""The API server and a watch of objects for `certs`, which does not depend on `webhook`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from certs.clock import delays
from certs.errors import ApiError
from certs.installation import Api, Installation
from webhook.errors import ClusterError
from webhook.kube import access
from webhook.kube.access import UNCHANGED, Overrides
from webhook.kube.informers import Informers, connect_reads
from webhook.kube.watched_resources import QUIET_WATCH_SECONDS, Item, WatchedResource
from webhook.model.objects import ClusterObject

if TYPE_CHECKING:
    from webhook.kube.client import Client

# The API server's client for `certs`.


def connect(kubeconfig: Path | None, overrides: Overrides = UNCHANGED) -> Api:
    """Return the API server of a kubeconfig, or of this process's pod.

    Slow: it imports the Kubernetes client. Raises ApiError, as the methods of `Api` do.
    """
    with _as_api_error():
        return CertificateApi(access.connect(kubeconfig, overrides))


@contextmanager
def _as_api_error() -> Iterator[None]:
    try:
        yield
    except ClusterError as error:
        raise ApiError(str(error)) from error


class CertificateApi:
    """The requests of `Api`, with a client; a ClusterError becomes an ApiError."""

    def __init__(self, client: Client) -> None:
        self.read = _as_api_error()(client.read)
        self.create = _as_api_error()(client.create)
        self.replace = _as_api_error()(client.replace)
        self.apply = _as_api_error()(client.apply)


# Watch the objects of `certs`, which does not depend on `webhook`.
#
# Only the uid and version of each object are kept, never a private key. The content of an object is
# read from the API server after its version has changed.


class CertificateWatch:
    """A watch that calls a function after each change of the objects."""

    def __init__(self, informers: Informers) -> None:
        self._informers = informers
        self._changed: Callable[[], None] = lambda: None

    def start(self, changed: Callable[[], None]) -> None:
        """Start threads that call `changed`."""
        self._changed = changed
        self._informers.start(self._report_changes)

    def stop(self) -> None:
        """Stop the threads."""
        self._informers.stop()

    @property
    def current(self) -> bool:
        """Whether all objects have been listed, and all watches are healthy."""
        return all(
            reflector.list_count and not reflector.problem
            for reflector in self._informers.reflectors
        )

    def _report_changes(self) -> None:
        self._informers.take_changes()  # and drop them, since `changed` has no use for them
        self._changed()


def certificate_watch(kubeconfig: Path | None, installation: Installation) -> CertificateWatch:
    """Prepare to watch the Secret and the webhook configurations of an installation."""
    return CertificateWatch(
        Informers(partial(connect_reads, kubeconfig), delays, kinds=kinds(installation))
    )


def kinds(installation: Installation) -> tuple[WatchedResource[object], ...]:
    """Return the kinds to watch, each object by its name, as required by RBAC."""
    secret = WatchedResource(
        resource="secrets",
        namespace=installation.namespace,
        selector=f"metadata.name={installation.ca_secret}",
        project=_version,
        watch_seconds=QUIET_WATCH_SECONDS,
    )
    webhook_configurations = (
        WatchedResource(
            resource=f"{configuration.kind.lower()}s",
            group="admissionregistration.k8s.io",
            selector=f"metadata.name={configuration.name}",
            project=_version,
            watch_seconds=QUIET_WATCH_SECONDS,
        )
        for configuration in installation.webhook_configurations
    )
    return (secret, *webhook_configurations)


def _version(manifest: Item) -> tuple[str, str]:
    metadata = ClusterObject(manifest).metadata
    return metadata["uid"], metadata["resourceVersion"]
