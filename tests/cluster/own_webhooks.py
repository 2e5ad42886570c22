"""Controllers with their own admission webhooks, called by the API server at the node's address."""

from __future__ import annotations

import base64
import json
import socket
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from tests.cluster.binaries import binary, module_dir
from tests.cluster.cluster import Cluster
from tests.cluster.pki import Authority
from tests.cluster.processes import ClusterError, Process
from tests.waiting import PATIENCE


@dataclass(frozen=True)
class Manager:
    """A program built with controller-runtime, which is named like its module."""

    name: str
    configuration: str
    """The apiVersion of its configuration file."""
    manifests: str
    """The kustomization of its webhooks, below the module's folder."""
    port: int
    """The port of its webhooks on the node."""


def start(cluster: Cluster, manager: Manager) -> Process:
    """Start the program, and register its webhooks once they answer."""
    folder = cluster.directory / "controllers" / manager.name
    folder.mkdir(parents=True)
    authority = Authority()
    authority.server(manager.name, [cluster.network.gateway]).write(folder, "tls")
    configuration = folder / "configuration.json"
    configuration.write_text(json.dumps(_configuration(manager, folder)))
    process = cluster.start(
        manager.name,
        [binary(manager.name), f"--config={configuration}"],
        {"KUBECONFIG": str(cluster.kubeconfig)},
    )
    _wait(process, (cluster.network.gateway, manager.port))
    _register(cluster, manager, authority.certificate)
    return process


def _configuration(manager: Manager, certificates: Path) -> dict[str, Any]:
    """Write the configuration file; the address 0 switches a listener off."""
    return {
        "apiVersion": manager.configuration,
        "kind": "Configuration",
        "leaderElection": {"leaderElect": False},
        "internalCertManagement": {"enable": False},
        "metrics": {"bindAddress": "0"},
        "health": {"healthProbeBindAddress": "0"},
        "webhook": {"port": manager.port, "certDir": str(certificates)},
    }


def _wait(process: Process, address: tuple[str, int]) -> None:
    deadline = time.monotonic() + PATIENCE
    while True:
        try:
            return socket.create_connection(address, 1).close()
        except OSError:
            if process.ended() or time.monotonic() > deadline:
                raise ClusterError(f"{process.name} does not answer\n{process.tail()}") from None
        time.sleep(0.1)


def _register(cluster: Cluster, manager: Manager, authority: bytes) -> None:
    """Apply the project's own webhook configurations, with another address for the program."""
    folder = module_dir(manager.name) / manager.manifests
    documents = yaml.safe_load_all(cluster.kubectl("kustomize", str(folder)))
    configurations = [
        document for document in documents if document["kind"].endswith("WebhookConfiguration")
    ]
    server = f"https://{cluster.network.gateway}:{manager.port}"
    for configuration in configurations:
        # Like the project's kustomization for users: the name decides the order of calls.
        configuration["metadata"]["name"] = f"{manager.name}-{configuration['metadata']['name']}"
        for webhook in configuration["webhooks"]:
            webhook["clientConfig"] = {
                "url": server + webhook["clientConfig"]["service"]["path"],
                "caBundle": base64.b64encode(authority).decode(),
            }
    cluster.kubectl("apply", "--filename=-", input=yaml.safe_dump_all(configurations))
