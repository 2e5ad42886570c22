"""Adapt the API server's client for `certs`, which does not depend on `webhook`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from certs.errors import ApiError
from certs.installation import Api
from webhook.errors import ClusterError
from webhook.kube.access import UNCHANGED, Overrides

if TYPE_CHECKING:
    from webhook.kube.client import Client


def connect(kubeconfig: Path | None, overrides: Overrides = UNCHANGED) -> Api:
    """Return the API server of a kubeconfig, or that of the pod that this process runs in.

    Slow: it imports the Kubernetes client. Raises ApiError, as the methods of `Api` do.
    """
    from webhook.kube.client import Client  # noqa: PLC0415 -- slow to import

    with _as_api_error():
        return CertificateApi(Client(kubeconfig, overrides))


@contextmanager
def _as_api_error() -> Iterator[None]:
    try:
        yield
    except ClusterError as error:
        raise ApiError(str(error)) from error


class CertificateApi:
    """The requests of a client that `Api` defines; a ClusterError becomes an ApiError."""

    def __init__(self, client: Client) -> None:
        self.read = _as_api_error()(client.read)
        self.create = _as_api_error()(client.create)
        self.replace = _as_api_error()(client.replace)
        self.apply = _as_api_error()(client.apply)
