"""Install the webhook in a cluster as docs/installation.md describes.

The site's kustomization sets only the image; nothing else in the shipped manifests changes.
"""

from __future__ import annotations

import json
import os
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import yaml
from prometheus_client.parser import text_string_to_metric_families

from tests.cluster import kwok, progress
from tests.cluster.api import Api
from tests.cluster.cluster import Cluster
from tests.cluster.existing import ExistingCluster
from tests.cluster.fabrics import apply_fabrics, define, remove, wait_until_in_use
from tests.cluster.images import ROOT, webhook_image
from tests.cluster.node import NAME as REAL
from tests.cluster.processes import ClusterError
from tests.waiting import PATIENCE
from webhook.config import EXAMPLE

OVERLAYS = ROOT / "manifests" / "overlays"
COMPONENTS = ROOT / "manifests" / "components"
#: The default overlay.
OVERLAY = "self-managed"
#: The name of all objects of the webhook, and of its namespace.
NAME = "rdma-webhook"
DEPLOYMENT = f"deployment/{NAME}"
CONFIGURATION = f"mutatingwebhookconfiguration/zz-{NAME}"
VALIDATION = f"validatingwebhookconfiguration/{NAME}"
#: A labeled namespace, otherwise without LimitRange, quota and the like.
LAB = "lab"
#: The GPU types of the fabrics file, with the RDMA resource of each: enough for many pods.
V100 = {"nvidia.com/v100": "64", "rdma/rdma_v100": "63"}
A100 = {"nvidia.com/a100": "64", "rdma/rdma_a100": "63"}
#: The label as GPU feature discovery sets it.
PRODUCT = {"nvidia.com/gpu.product": "NVIDIA-A100-SXM4-40GB"}
V100_PRODUCT = "nvidia.com/gpu.product=Tesla-V100-SXM2-32GB"
#: The toleration of pods for the fake node, which has the A100s.
TOLERATION = {"key": kwok.FAKE, "operator": "Exists"}


class NoAnswerError(ClusterError, ConnectionError):
    """The API server, or the replica behind its proxy, gave no answer, or an error.

    `until` then tries again: a replica may have ended since it was listed.
    """


@dataclass(frozen=True)
class Webhook:
    """A running installation of the webhook."""

    cluster: Cluster
    image: str
    fabrics: Path = EXAMPLE

    def replicas(self) -> list[str]:
        """Return the names of its pods that are not being deleted."""
        return self.pods(NAME)

    def pods(self, label: str) -> list[str]:
        """Return the names of the pods with this app.kubernetes.io/name, as `replicas` does."""
        selector = f"labelSelector=app.kubernetes.io/name={label}"
        pods = json.loads(self.read(f"/api/v1/namespaces/{NAME}/pods?{selector}"))["items"]
        return [
            pod["metadata"]["name"] for pod in pods if "deletionTimestamp" not in pod["metadata"]
        ]

    def read(self, path: str) -> str:
        """Return the API server's answer for this path."""
        # kubectl would work, too, but takes a second on a busy machine.
        api = Api(self.cluster.access, seconds=30.0)
        answer = api.text(path)
        if answer is None:
            raise NoAnswerError(f"the API server has no answer for {path}")
        return answer

    def kubectl(self, *arguments: str, **how: Any) -> str:
        """Run kubectl in the webhook's namespace, see `Cluster.kubectl`."""
        return self.cluster.kubectl(f"--namespace={NAME}", *arguments, **how)

    def ask(self, replica: str, path: str) -> str:
        """Return a replica's answer on its health port, which also has /metrics."""
        return self.read(f"/api/v1/namespaces/{NAME}/pods/{replica}:8080/proxy{path}")

    def counted(self, metric: str, *by: str) -> Counter[tuple[str, ...]]:
        """Return a metric of all replicas by the values of these labels; without any, by ()."""
        counts: Counter[tuple[str, ...]] = Counter()
        for replica in self.replicas():
            add_samples(counts, self.ask(replica, "/metrics"), metric, by)
        return counts


def add_samples(
    counts: Counter[tuple[str, ...]], text: str, metric: str, by: Sequence[str] = (), **only: str
) -> None:
    """Add the samples of a metric in Prometheus' text format whose labels include `only`."""
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            if sample.name == metric and only.items() <= sample.labels.items():
                counts[tuple(sample.labels[label] for label in by)] += int(sample.value)


def install(
    cluster: Cluster,
    fabrics: Path = EXAMPLE,
    patches: Sequence[Any] = (),
    overlay: str = OVERLAY,
    components: Sequence[str] = (),
) -> Webhook:
    """Install the webhook of this working tree, replacing one that is there, and wait for it.

    In the order of docs/installation.md: the kind, the program, and then the fabrics, which stay if
    the program is removed. `patches` are JSON patches of its Deployment, `components` folders of
    manifests/components. The ClusterError of one that does not become ready has pods and events.
    """
    image = _image(cluster)
    folders = site(image, patches, overlay, components)
    with progress.step("installing the webhook"), folders as folder:
        define(cluster)
        cluster.kubectl("apply", "-k", str(folder))
        webhook = Webhook(cluster, image, fabrics)
        _label(cluster)
        _wait(webhook)
        wait_until_in_use(webhook, apply_fabrics(cluster, fabrics.read_text(encoding="utf-8")))
        called(cluster)
    return webhook


def changed_by_apply(cluster: Cluster, overlay: str = OVERLAY) -> list[str]:
    """Apply the manifests again; return kubectl's lines for objects that it changed.

    Without the PodDisruptionBudget: kubectl sends its selector each time, which changes nothing.
    """
    with site(_image(cluster), overlay=overlay) as folder:
        printed = cluster.kubectl("apply", "-k", str(folder)).splitlines()
    assert len(printed) > 20
    always = f"poddisruptionbudget.policy/{NAME} configured"
    return [line for line in printed if not line.endswith(" unchanged") and line != always]


def _image(cluster: Cluster) -> str:
    """Return the name of an image that the cluster's nodes have or can pull."""
    if isinstance(cluster, ExistingCluster):
        return cluster.image
    image = webhook_image()
    cluster.load(image.archive)
    return image.name


def _named(image: str) -> dict[str, str]:
    """Split an image's name as kustomize does; a registry may have a port."""
    name, at, digest = image.partition("@")
    if at:
        return {"newName": name, "digest": digest}
    host, slash, last = image.rpartition("/")
    name, _, tag = last.partition(":")
    return {"newName": f"{host}{slash}{name}", "newTag": tag or "latest"}


def uninstall(cluster: Cluster, overlay: str = OVERLAY) -> None:
    """Run the commands of docs/installation.md that remove the webhook, until all is gone.

    Raises KubectlError if one fails.
    """
    page = (ROOT / "docs" / "installation.md").read_text(encoding="utf-8")
    block = page.partition("## Removing\n\n```console\n")[2].partition("```")[0]
    with site("removed:none", overlay=overlay) as folder:
        for line in block.splitlines():
            words = line.removeprefix("$ kubectl ").split()
            cluster.kubectl(*(str(folder) if word == "." else word for word in words))


def uninstall_at_once(cluster: Cluster, overlay: str = OVERLAY) -> None:
    """Remove the webhook without letting replicas drain.

    Once the API server does not call them any more, there are no requests to wait for.
    """
    cluster.kubectl("delete", CONFIGURATION, VALIDATION, "--ignore-not-found")
    uncalled(cluster)
    end_replicas(cluster)
    with site("removed:none", overlay=overlay) as folder:
        cluster.kubectl("delete", "-k", str(folder), "--ignore-not-found")


def end_replicas(cluster: Cluster) -> None:
    """Delete the Deployment and end its pods without letting them drain.

    The controllers are deleted first, without their pods: deleting a pod begins its drain, and a
    later deletion with a shorter grace period does not interrupt that (seen with Kubernetes 1.36:
    82 s instead of 5 s). Pods that drain already are deleted by force: nobody waits for their end.
    """
    here = f"--namespace={NAME}"
    cluster.kubectl("delete", "deployments,replicasets", here, "--all", "--cascade=orphan")
    pods = json.loads(cluster.kubectl("get", "pods", here, "--output=json"))["items"]
    metadata = [pod["metadata"] for pod in pods]
    draining = [pod["name"] for pod in metadata if "deletionTimestamp" in pod]
    if draining:
        cluster.kubectl("delete", "pods", here, *draining, "--force", "--ignore-not-found")
    cluster.kubectl("delete", "pods", here, "--all", "--now")


def clear(cluster: Cluster) -> None:
    """Remove everything that tests have installed, if it is there, and wait until it is gone."""
    cluster.kubectl("delete", CONFIGURATION, VALIDATION, "--ignore-not-found")
    with site("removed:none") as folder:
        cluster.kubectl("delete", "-k", str(folder), "--ignore-not-found")
    remove(cluster)
    cluster.kubectl("delete", "namespace", LAB, "--ignore-not-found")


@contextmanager
def site(
    image: str,
    patches: Sequence[Any] = (),
    overlay: str = OVERLAY,
    components: Sequence[str] = (),
) -> Iterator[Path]:
    """Write a site's folder with its kustomization."""
    with TemporaryDirectory(prefix="site-") as scratch:
        folder = Path(scratch).resolve()
        target = {"kind": "Deployment", "name": NAME}
        kustomization = {
            # kustomize accepts no absolute paths.
            "resources": [os.path.relpath(OVERLAYS / overlay, folder)],
            "components": [
                os.path.relpath(COMPONENTS / component, folder) for component in components
            ],
            "images": [{"name": NAME, **_named(image)}],
            "patches": [{"target": target, "patch": json.dumps(patch)} for patch in patches],
        }
        (folder / "kustomization.yaml").write_text(yaml.safe_dump(kustomization))
        yield folder


def equip(cluster: Cluster) -> str:
    """Give the real node V100s, and return a fake node with A100s, which is added if missing."""
    cluster.advertise(V100, REAL)
    cluster.kubectl("label", "node", REAL, V100_PRODUCT, "--overwrite")
    nodes = json.loads(cluster.kubectl("get", "nodes", "--output=json"))["items"]
    has = [
        node["metadata"]["name"] for node in nodes if A100.keys() <= {*node["status"]["capacity"]}
    ]
    return has[0] if has else cluster.fake_nodes(1, PRODUCT, A100)[0]


def _label(cluster: Cluster) -> None:
    """Make the labeled namespace."""
    metadata = {"name": LAB, "labels": {"rdma.lab/enable": "true"}}
    lab = {"apiVersion": "v1", "kind": "Namespace", "metadata": metadata}
    cluster.kubectl("apply", "--filename=-", input=json.dumps(lab))


def _wait(webhook: Webhook) -> None:
    """Wait until all replicas have this version and are ready."""
    deadline = time.monotonic() + PATIENCE
    while not _rolled_out(webhook):
        if time.monotonic() > deadline:
            raise ClusterError(f"not ready after {PATIENCE:g} s\n{_diagnosis(webhook)}")
        time.sleep(0.2)
    for replica in webhook.replicas():
        answer = webhook.ask(replica, "/readyz")
        if not answer.endswith("\nready\n"):
            raise ClusterError(f"{replica} says:\n{answer}")


def _rolled_out(webhook: Webhook) -> bool:
    """Return whether all replicas have this version and are ready.

    `kubectl rollout status` would also wait for minReadySeconds, which matters only when replacing.
    """
    path = f"/apis/apps/v1/namespaces/{NAME}/deployments/{NAME}"
    deployment: dict[str, Any] = json.loads(webhook.read(path))
    status, count = deployment["status"], deployment["spec"]["replicas"]
    counted = {status.get(name, 0) for name in ("replicas", "updatedReplicas", "readyReplicas")}
    return (
        counted == {count}
        and status.get("observedGeneration") == deployment["metadata"]["generation"]
    )


def called(cluster: Cluster, seconds: float = PATIENCE) -> None:
    """Wait until an opted-in pod is changed: API server and kube-proxy need time to notice us."""
    pod = _created(cluster)
    deadline = time.monotonic() + seconds
    while "rdma.lab/status" not in pod:
        if time.monotonic() > deadline:
            raise ClusterError(f"the API server does not call the webhook:\n{pod}")
        time.sleep(0.2)
        pod = _created(cluster)


def uncalled(cluster: Cluster, seconds: float = PATIENCE) -> None:
    """Wait until an opted-in pod is created unchanged: the API server needs time to notice."""
    pod = _created(cluster)
    deadline = time.monotonic() + seconds
    while "rdma.lab/status" in pod or "kind: Pod" not in pod:
        if time.monotonic() > deadline:
            raise ClusterError(f"the API server still calls the webhook:\n{pod}")
        time.sleep(0.2)
        pod = _created(cluster)


def _created(cluster: Cluster) -> str:
    """Dry-run an opted-in pod; return it, or the rejection."""
    metadata = {"name": "asks", "namespace": LAB, "annotations": {"rdma.lab/enable": "true"}}
    spec = {"containers": [{"name": "main", "image": "example.com/none"}]}
    pod = json.dumps({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec})
    create = ("create", "--dry-run=server", "--output=yaml", "--filename=-")
    return cluster.kubectl(*create, input=pod, check=False)


def _diagnosis(webhook: Webhook) -> str:
    commands = (
        ("get", "pods", "--output=wide"),
        ("get", "events", "--sort-by=.lastTimestamp"),
        ("logs", f"--selector=app.kubernetes.io/name={NAME}", "--prefix", "--tail=20"),
    )
    return "\n".join(webhook.kubectl(*command, check=False) for command in commands)
