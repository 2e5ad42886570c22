"""The fabrics of a cluster: the kind, its only object, and the configuration in use.

Plain requests where a test waits for the answer: kubectl takes a second for each.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import yaml
from prometheus_client.parser import text_string_to_metric_families

from tests.cluster.cluster import Cluster
from tests.cluster.images import ROOT
from tests.cluster.processes import ClusterError
from tests.waiting import until
from webhook.config.load import parse_object

if TYPE_CHECKING:
    from tests.cluster.install import Webhook

CRD = ROOT / "manifests" / "crd"
#: The definition, the object, and its path in the API.
KIND = "crd/fabricconfigurations.rdma.lab"
OBJECT = "fabricconfigurations.rdma.lab/default"
PATH = "/apis/rdma.lab/v1alpha1/fabricconfigurations/default"


def define(cluster: Cluster) -> None:
    """Apply the definition as docs/installation.md shows, and wait until its kind is served."""
    cluster.kubectl("apply", "-k", str(CRD))
    cluster.kubectl("wait", "--for=condition=Established", "--timeout=300s", KIND)
    # The API server serves a new kind a moment after it is established.
    until(lambda: "the server" not in cluster.kubectl("get", "fabrics", check=False))


def apply_fabrics(cluster: Cluster, text: str) -> str:
    """Apply fabrics as docs/installation.md shows; return the hash of the configuration."""
    outputs: list[str] = []

    def answered() -> bool:
        outputs.append(cluster.kubectl("apply", "--filename=-", input=text, check=False))
        return "failed calling webhook" not in outputs[-1]

    until(answered)  # the API server takes a moment to reach a webhook that has just become ready
    if not outputs[-1].startswith("fabricconfiguration.rdma.lab/default "):
        raise ClusterError(f"the fabrics cannot be applied:\n{outputs[-1]}")
    return hash_of(yaml.safe_load(text))


def hash_of(configuration: dict[str, Any]) -> str:
    """Return the hash of a configuration."""
    named = {**configuration, "metadata": {"name": "default"}}
    return parse_object(named, OBJECT).compiled.config_hash


def used(metrics: str) -> str:
    """Return the hash of the configuration that a replica with these metrics uses; "" for none."""
    for family in text_string_to_metric_families(metrics):
        for sample in family.samples:
            if sample.name == "rdma_webhook_config_info":
                return sample.labels["config"]
    return ""


def wait_until_in_use(webhook: Webhook, config: str) -> float:
    """Wait until all replicas use a configuration ("": none); return how long it took."""
    return until(
        lambda: all(
            used(webhook.ask(replica, "/metrics")) == config for replica in webhook.replicas()
        )
    )


def remove(cluster: Cluster) -> None:
    """Remove the kind, and with it the object."""
    cluster.kubectl("delete", KIND, "--ignore-not-found")


def stored(webhook: Webhook) -> dict[str, Any]:
    """Return the stored object."""
    document: dict[str, Any] = json.loads(webhook.read(PATH))
    return document
