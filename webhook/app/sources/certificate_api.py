"""The API server as `certs` sees it, which knows nothing of `webhook`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from certs import errors
from certs.api import Api, Object
from webhook.errors import ClusterError

if TYPE_CHECKING:
    from webhook.kube.client import Client


def connect(kubeconfig: Path | None) -> Api:
    """Return the API server of a kubeconfig, or of the pod that this runs in.

    Slow: it imports the Kubernetes client. Raises certs' ClusterError, as its methods do.
    """
    from webhook.kube.client import Client  # noqa: PLC0415 -- see there

    with _translated():
        return CertificateApi(Client(kubeconfig))


class CertificateApi:
    """Passes requests on, and errors back as those of `certs`."""

    def __init__(self, client: Client) -> None:
        self._client = client

    def read(self, path: str) -> Object | None:
        """Return the object at a path; None if there is none."""
        with _translated():
            return self._client.read(path)

    def create(self, path: str, body: Object) -> bool:
        """Create an object in a collection; False if one of its name is there already."""
        with _translated():
            return self._client.create(path, body)

    def replace(self, path: str, body: Object) -> bool:
        """Replace an object; False if it is not the one (resourceVersion) of `body` any more."""
        with _translated():
            return self._client.replace(path, body)

    def apply(self, path: str, body: Object) -> bool:
        """Apply (server-side, with force) the fields of `body`, and own them."""
        with _translated():
            return self._client.apply(path, body)


@contextmanager
def _translated() -> Iterator[None]:
    try:
        yield
    except ClusterError as error:
        raise errors.ClusterError(str(error)) from error
