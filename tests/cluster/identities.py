"""The certificates and kubeconfigs of a cluster's programs."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from tests.cluster import pki
from tests.cluster.namespaces import INSIDE

#: The files that docs/installation.md gives an API server to read, and their folder there.
EXAMPLES = Path(__file__).parents[2] / "manifests/examples/api-server"
INSTALLED = "/etc/kubernetes/rdma-webhook"
#: The groups that RBAC's bootstrap policy uses; it knows the other system users by name.
_GROUPS = {"admin": ("system:masters",), "kubelet-client": ("system:masters",)}


@dataclass(frozen=True)
class Identities:
    """The files in the cluster's directory that identify its programs."""

    directory: Path
    server: str
    authority: pki.Authority

    @property
    def ca(self) -> Path:
        """The authority's certificate, on the machine."""
        return self.directory / "pki" / "ca.crt"

    def prepare(self, hosts: list[str]) -> None:
        """Write the API server's files; `hosts` are its names and addresses."""
        folder = self.directory / "pki"
        folder.mkdir(mode=0o700)
        pki.private(self.ca, self.authority.certificate)
        pki.private(folder / "service-account.key", pki.key_pem())
        self.authority.server("kube-apiserver", hosts).write(folder, "kube-apiserver")
        self._client("kubelet-client").write(folder, "kubelet-client")
        self._to_webhooks(folder / "webhooks")

    def _to_webhooks(self, folder: Path) -> None:
        """Write the API server's client certificate for our webhook, and its configuration for it.

        They have a separate CA, since the cluster's CA signs the certificates of many clients.
        """
        folder.mkdir(mode=0o700)
        clients = pki.Authority()
        pki.private(folder / "ca.crt", clients.certificate)
        clients.client("kube-apiserver").write(folder, "client")
        for file in EXAMPLES.glob("*.yaml"):
            text = file.read_text().replace(INSTALLED, str(INSIDE / "pki" / folder.name))
            (folder / file.name).write_text(text)

    def kubeconfig(self, user: str, *groups: str) -> Path:
        """Write the user's kubeconfig; return its path for the cluster's programs."""
        content = pki.kubeconfig(
            self.server, self.authority.certificate, self._client(user, *groups)
        )
        name = user.replace(":", "-") + ".kubeconfig"
        pki.private(self.directory / "pki" / name, content)
        return INSIDE / "pki" / name

    def admin(self) -> Path:
        """Write the administrator's kubeconfig; return its path on the machine."""
        content = pki.kubeconfig(self.server, self.authority.certificate, self._client("admin"))
        return pki.private(self.directory / "kubeconfig", content)

    def _client(self, user: str, *groups: str) -> pki.Signed:
        return self.authority.client(user, *(groups or _GROUPS.get(user, ())))
