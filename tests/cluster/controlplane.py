"""etcd, API server, controller manager and scheduler."""

from __future__ import annotations

from pathlib import Path

from tests.cluster.binaries import binary
from tests.cluster.identities import Identities
from tests.cluster.namespaces import INSIDE
from tests.cluster.network import Network
from tests.cluster.processes import Processes

PORT = 6443
_ETCD = "http://127.0.0.1:2379"
_PEER = "http://127.0.0.1:2380"
#: Load tests create pods faster than the clients' defaults (20 and 50 requests a second) allow.
_FAST = ("--kube-api-qps=500", "--kube-api-burst=1000")


def server(network: Network) -> str:
    """Return the API server's URL, the same inside and outside."""
    return f"https://{network.gateway}:{PORT}"


def start_api_server(processes: Processes, network: Network, minor: str) -> None:
    """Start etcd and the API server, which waits for etcd."""
    processes.start("etcd", [binary("etcd", minor), *_etcd()])
    processes.start("kube-apiserver", [binary("kube-apiserver", minor), *_api_server(network)])


def start_controllers(processes: Processes, identities: Identities, minor: str) -> None:
    """Start controller manager and scheduler; the API server must be ready."""
    manager = identities.kubeconfig("system:kube-controller-manager")
    processes.start(
        "kube-controller-manager",
        [binary("kube-controller-manager", minor), *_controllers(manager)],
    )
    scheduler = identities.kubeconfig("system:kube-scheduler")
    processes.start(
        "kube-scheduler",
        [
            binary("kube-scheduler", minor),
            f"--kubeconfig={scheduler}",
            f"--authentication-kubeconfig={scheduler}",
            f"--authorization-kubeconfig={scheduler}",
            "--leader-elect=false",
            *_FAST,
        ],
    )


def _etcd() -> list[str]:
    return [
        f"--data-dir={INSIDE}/etcd",
        "--unsafe-no-fsync",  # this data need not survive a power failure
        "--log-level=warn",
        f"--listen-client-urls={_ETCD}",
        f"--advertise-client-urls={_ETCD}",
        f"--listen-peer-urls={_PEER}",
        f"--initial-advertise-peer-urls={_PEER}",
        f"--initial-cluster=default={_PEER}",
    ]


def _api_server(network: Network) -> list[str]:
    pki = INSIDE / "pki"
    return [
        f"--etcd-servers={_ETCD}",
        f"--bind-address={network.gateway}",
        f"--advertise-address={network.gateway}",
        f"--secure-port={PORT}",
        f"--cert-dir={pki}",
        f"--tls-cert-file={pki}/kube-apiserver.crt",
        f"--tls-private-key-file={pki}/kube-apiserver.key",
        f"--client-ca-file={pki}/ca.crt",
        "--kubelet-preferred-address-types=InternalIP",
        f"--kubelet-client-certificate={pki}/kubelet-client.crt",
        f"--kubelet-client-key={pki}/kubelet-client.key",
        "--service-account-issuer=https://kubernetes.default.svc.cluster.local",
        f"--service-account-key-file={pki}/service-account.key",
        f"--service-account-signing-key-file={pki}/service-account.key",
        f"--service-cluster-ip-range={network.services}",
        "--authorization-mode=Node,RBAC",
        f"--admission-control-config-file={pki}/webhooks/admission.yaml",
        "--allow-privileged=true",
    ]


def _controllers(kubeconfig: Path) -> list[str]:
    pki = INSIDE / "pki"
    return [
        f"--kubeconfig={kubeconfig}",
        f"--authentication-kubeconfig={kubeconfig}",
        f"--authorization-kubeconfig={kubeconfig}",
        "--leader-elect=false",
        f"--service-account-private-key-file={pki}/service-account.key",
        f"--root-ca-file={pki}/ca.crt",
        "--use-service-account-credentials=true",
        # Tests stop the only API server. When it is back, this program still pauses for up to a
        # minute before it checks the nodes' leases: with the default of 50 s all nodes would count
        # as dead, and their pods would not be endpoints of any Service.
        "--node-monitor-grace-period=10m",
        *_FAST,
    ]
