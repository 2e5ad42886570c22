"""Watch the objects of `certs`, which does not depend on `webhook`.

Only versions of the objects are kept, and no key. What an object contains is read from the API
server when its version has changed.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

from certs.backoff import delays
from certs.installation import Installation
from webhook.kube.api_reads import connect_reads
from webhook.kube.informers import Feed
from webhook.kube.watched_resources import QUIET, Item, Kind


class CertificateWatch:
    """Tells when one of the objects has changed."""

    def __init__(self, feed: Feed) -> None:
        self._feed = feed
        self._changed: Callable[[], None] = lambda: None

    def start(self, changed: Callable[[], None]) -> None:
        """Begin in threads, in which `changed` is called."""
        self._changed = changed
        self._feed.start(self._take)

    def stop(self) -> None:
        """Ask the threads to end."""
        self._feed.stop()

    @property
    def current(self) -> bool:
        """Whether all objects have been listed, and all watches are well."""
        return all(one.lists and not one.problem for one in self._feed.reflectors)

    def _take(self) -> None:
        self._feed.take()
        self._changed()


def certificate_watch(kubeconfig: Path | None, installation: Installation) -> CertificateWatch:
    """Prepare to watch the Secret and the webhook configurations of an installation."""
    return CertificateWatch(
        Feed(partial(connect_reads, kubeconfig), delays, kinds=kinds(installation))
    )


def kinds(installation: Installation) -> tuple[Kind, ...]:
    """Return what to watch: each object by its name, as RBAC requires it."""
    secret = Kind(
        resource="secrets",
        namespace=installation.namespace,
        selector=f"metadata.name={installation.ca_secret}",
        project=_version,
        lasts=QUIET,
    )
    others = (
        Kind(
            resource=f"{one.kind.lower()}s",
            group="admissionregistration.k8s.io",
            selector=f"metadata.name={one.name}",
            project=_version,
            lasts=QUIET,
        )
        for one in installation.configurations
    )
    return (secret, *others)


def _version(item: Item) -> tuple[str, str]:
    metadata = item["metadata"]
    return metadata["uid"], metadata["resourceVersion"]
