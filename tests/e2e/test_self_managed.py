"""Certificates of its own, with a real API server and the rights that the manifests give."""

from __future__ import annotations

import json
from base64 import b64decode
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.cluster.cluster import Cluster
from tests.integration.replica import Replica
from tests.integration.serving import pod, wait_for

RBAC = Path(__file__).parents[2] / "manifests" / "overlays" / "self-managed" / "rbac.yaml"
#: Everything here has this in the place of `rdma-webhook`, beside one that is installed.
NAME = "own-certificates"
CONFIGURATION = f"zz-{NAME}"
REPLICAS = 5
FLAGS = (
    "--service", NAME, "--ca-secret", f"{NAME}-ca", "--webhook-configuration", CONFIGURATION,
)  # fmt: skip


def _namespace(name: str, **labels: str) -> dict[str, Any]:
    metadata = {"name": name, "labels": labels}
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": metadata}


def _service() -> dict[str, Any]:
    """Write a Service without a selector: its endpoints are processes on this machine."""
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": NAME, "namespace": NAME},
        "spec": {"ports": [{"name": "https", "port": 443}]},
    }


def _endpoint(replica: Replica, host: str) -> dict[str, Any]:
    port = replica.ports["mutate"]
    labels = {"kubernetes.io/service-name": NAME}
    return {
        "apiVersion": "discovery.k8s.io/v1",
        "kind": "EndpointSlice",
        "metadata": {"name": f"{NAME}-{port}", "namespace": NAME, "labels": labels},
        "addressType": "IPv4",
        "endpoints": [{"addresses": [host]}],
        "ports": [{"name": "https", "port": port}],
    }


def _configuration() -> dict[str, Any]:
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"]}
    webhook = {
        "name": "pods.rdma.lab",
        "admissionReviewVersions": ["v1"],
        "sideEffects": "None",
        "clientConfig": {"service": {"name": NAME, "namespace": NAME, "path": "/mutate"}},
        "rules": [{**rule, "resources": ["pods"]}],
        "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": f"{NAME}-lab"}},
    }
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "MutatingWebhookConfiguration",
        "metadata": {"name": CONFIGURATION},
        "webhooks": [webhook],
    }


def _apply(cluster: Cluster, *objects: dict[str, Any]) -> None:
    cluster.kubectl("apply", "-f", "-", input=yaml.safe_dump_all(objects))


def _published(cluster: Cluster) -> dict[str, Any]:
    shown = ("get", "mutatingwebhookconfigurations", CONFIGURATION, "-o", "json")
    found: dict[str, Any] = json.loads(cluster.kubectl(*shown, "--show-managed-fields"))
    return found


def _bundle(cluster: Cluster) -> str:
    return str(_published(cluster)["webhooks"][0]["clientConfig"].get("caBundle", ""))


@pytest.fixture(scope="module")
def account(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Make the namespace, and a kubeconfig of a ServiceAccount with the shipped rights, no more."""
    account = {"apiVersion": "v1", "kind": "ServiceAccount"}
    metadata = {"name": NAME, "namespace": NAME}
    _apply(cluster, _namespace(NAME), _namespace(f"{NAME}-lab"), {**account, "metadata": metadata})
    rights = RBAC.read_text().replace("rdma-webhook", NAME)
    cluster.kubectl("apply", "-f", "-", input=rights)
    config = yaml.safe_load(cluster.kubeconfig.read_text())
    token = cluster.kubectl("create", "token", NAME, "-n", NAME).strip()
    for user in config["users"]:
        user["user"] = {"token": token}
    path = tmp_path_factory.mktemp(NAME) / "config"
    path.write_text(yaml.safe_dump(config))
    yield path
    cluster.kubectl("delete", "-f", "-", "--ignore-not-found", input=rights)
    cluster.kubectl("delete", "namespace", NAME, f"{NAME}-lab", "--wait=false")


@pytest.fixture
def kubeconfig(cluster: Cluster, account: Path) -> Iterator[Path]:
    """Connect as that account; afterwards there is nothing again that a replica made or reads."""
    yield account
    cluster.kubectl("delete", "mutatingwebhookconfigurations", CONFIGURATION, "--ignore-not-found")
    kinds = "services,endpointslices,secrets"
    cluster.kubectl("delete", kinds, "--all", "-n", NAME)


@pytest.fixture
def replicas(cluster: Cluster, kubeconfig: Path, tmp_path: Path) -> Iterator[list[Replica]]:
    """Start several at the same moment, and have the Service lead to all of them."""
    host = cluster.network.machine
    made = [
        Replica(kubeconfig, tmp_path / str(number), NAME, *FLAGS, host=host)
        for number in range(REPLICAS)
    ]
    with ExitStack() as stack:
        for replica in made:
            replica.launch()
            stack.callback(replica.end)
        for replica in made:
            replica.listening()
        _apply(cluster, _service(), *(_endpoint(replica, host) for replica in made))
        yield made


def _all_ready(replicas: list[Replica]) -> None:
    wait_for(lambda: all(replica.ready()[0] == 200 for replica in replicas), 60)


def test_replicas_that_start_at_once_are_all_trusted(
    cluster: Cluster, replicas: list[Replica]
) -> None:
    """On an empty namespace: one CA, one Secret, and the API server reaches every one of them.

    They wait for the MutatingWebhookConfiguration and never make one; of it they own caBundle.
    """
    missing = f"there is no MutatingWebhookConfiguration {CONFIGURATION} yet"
    wait_for(lambda: all(missing in replica.ready()[1] for replica in replicas), 60)
    _apply(cluster, _configuration())
    _all_ready(replicas)

    bundle = _bundle(cluster)
    secret = json.loads(cluster.kubectl("get", "secret", f"{NAME}-ca", "-n", NAME, "-o", "json"))
    assert bundle == secret["data"]["ca.crt"]
    assert b64decode(bundle).count(b"BEGIN CERTIFICATE") == 1
    for replica in replicas:
        assert replica.handshake(bundle, f"{NAME}.{NAME}.svc")[0] == f"{NAME}.{NAME}.svc"
    owned = {
        entry["manager"]: entry["fieldsV1"]["f:webhooks"]['k:{"name":"pods.rdma.lab"}']
        for entry in _published(cluster)["metadata"]["managedFields"]
    }
    ours: dict[str, Any] = {".": {}, "f:name": {}, "f:clientConfig": {"f:caBundle": {}}}
    assert owned["rdma-webhook"] == ours


def test_the_api_server_calls_it_and_goes_on_after_a_repair(
    cluster: Cluster, replicas: list[Replica]
) -> None:
    """A pod is patched over TLS that the API server verified; who empties caBundle is undone."""
    _apply(cluster, _configuration())
    _all_ready(replicas)
    bundle = _bundle(cluster)
    wait_for(lambda: _patched(cluster), 60)

    operation = [{"op": "remove", "path": "/webhooks/0/clientConfig/caBundle"}]
    cluster.kubectl(
        "patch", "mutatingwebhookconfigurations", CONFIGURATION, "--type=json",
        "-p", json.dumps(operation),
    )  # fmt: skip
    took = wait_for(lambda: _bundle(cluster) == bundle, 60)
    print(f"caBundle was emptied, and healed after {took:.1f} s")  # noqa: T201 -- a figure
    wait_for(lambda: _patched(cluster), 60)


def _patched(cluster: Cluster) -> bool:
    """Ask what would be created; the pod is not."""
    asked = pod()
    asked["spec"]["containers"][0]["image"] = "example.com/trainer"
    manifest = json.dumps(asked)
    create = ("create", "-n", f"{NAME}-lab", "--dry-run=server", "-o", "json", "-f", "-")
    answer = cluster.kubectl(*create, input=manifest, check=False)
    return "rdma.lab/status" in answer
