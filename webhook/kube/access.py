"""Access to an API server: a kubeconfig, a pod's account, or kubectl's options."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from webhook.kube.client import Client

#: Where the kubelet mounts the credentials of the pod's service account.
SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
#: The variable that the kubelet sets in every container.
IN_CLUSTER = "KUBERNETES_SERVICE_HOST"
#: The variable that the manifests set: the pod's namespace, even without a service account.
NAMESPACE_VARIABLE = "POD_NAMESPACE"


class Overrides(NamedTuple):
    """Changes that kubectl's global options make to a kubeconfig; "", () and 0 change nothing."""

    context: str = ""
    cluster: str = ""
    user: str = ""
    server: str = ""
    token: str = ""
    certificate_authority: str = ""
    client_certificate: str = ""
    client_key: str = ""
    tls_server_name: str = ""
    insecure: bool = False
    acting_as: str = ""
    acting_uid: str = ""
    acting_groups: tuple[str, ...] = ()
    #: The longest duration of a request, in seconds.
    request_timeout: float = 0

    @property
    def part_of_kubeconfig(self) -> str:
        """An overridden part that only a kubeconfig has; "" without one."""
        for part in ("context", "cluster", "user"):
            if name := getattr(self, part):
                return f"{part} {name}"
        return ""

    @property
    def files(self) -> tuple[str, ...]:
        """The credential files."""
        credentials = (self.certificate_authority, self.client_certificate, self.client_key)
        return tuple(filter(None, credentials))


UNCHANGED = Overrides()


def connect(kubeconfig: Path | None, overrides: Overrides = UNCHANGED) -> Client:
    """Return a client of a kubeconfig, or of this process's pod.

    Slow: it imports the Kubernetes client. The modules of that client import each other in circles:
    if two threads begin with different ones, Python ends the deadlock with an ImportError. So each
    thread calls this function first. Raises ClusterError if the credentials cannot be read.
    """
    from webhook.kube.client import Client  # noqa: PLC0415 -- slow to import

    return Client(kubeconfig, overrides)


def kubeconfig_or_pod(given: Path | None, environment: Mapping[str, str]) -> Path | None:
    """Return the kubeconfig that kubectl would use; None for the account of this pod.

    $KUBECONFIG may list several files. A kubeconfig is preferred to the account, which is used if
    no kubeconfig is given and none exists. Source: client-go, clientcmd/merged_client_builder.go.
    """
    default = Path(environment.get("KUBECONFIG") or Path.home() / ".kube" / "config")
    if given is None and in_pod(environment) and not exists(default):
        return None
    return given or default


def exists(kubeconfig: Path) -> bool:
    """Return whether one of the files exists."""
    return any(map(os.path.exists, str(kubeconfig).split(os.pathsep)))


def in_pod(environment: Mapping[str, str]) -> bool:
    """Return whether this process runs in a pod with its account's token."""
    return bool(environment.get(IN_CLUSTER)) and (SERVICE_ACCOUNT / "token").is_file()


def own_namespace(environment: Mapping[str, str]) -> str:
    """Return the namespace of this process's pod; "" if it is unknown."""
    if namespace := environment.get(NAMESPACE_VARIABLE, ""):
        return namespace
    try:
        return (SERVICE_ACCOUNT / "namespace").read_text().strip()
    except OSError:
        return ""
