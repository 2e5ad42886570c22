"""`rdma-webhook why` compares the status with what the live pod carries."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.cluster.install import CONFIGURATION
from tests.e2e.admission.neighbor import AFTER, BEFORE, Habit, Neighbor, Ops, running
from tests.e2e.documents import Document, make_namespaces, namespace
from tests.e2e.installed.identity import allow, kubeconfig_of
from tests.e2e.installed.space import Space
from tests.e2e.installed.test_why import explained, job, pod_of, texts
from tests.waiting import until

V100, RDMA = "nvidia.com/v100", "rdma/rdma_v100"
MAIN = "/spec/containers/0"
STATUS = "rdma.lab/status"


def drops_capability(pod: Document) -> Ops:
    """Remove what the container's securityContext adds."""
    security = pod["spec"]["containers"][0].get("securityContext")
    return [{"op": "remove", "path": f"{MAIN}/securityContext/capabilities"}] if security else []


def drops_resource(pod: Document) -> Ops:
    """Remove the RDMA resource."""
    return [
        {"op": "remove", "path": f"{MAIN}/resources/{section}/{RDMA.replace('/', '~1')}"}
        for section, amounts in pod["spec"]["containers"][0]["resources"].items()
        if RDMA in amounts
    ]


def limits_memory(pod: Document) -> Ops:
    """Limit the container's memory to 1 GiB."""
    limits = pod["spec"]["containers"][0]["resources"]["limits"]
    limit = {"op": "add", "path": f"{MAIN}/resources/limits/memory", "value": "1Gi"}
    return [] if "memory" in limits else [limit]


def disables_nccl(pod: Document) -> Ops:
    """Turn the RDMA of NCCL off in the container's env."""
    variables = pod["spec"]["containers"][0].get("env", [])
    off = {"name": "NCCL_IB_DISABLE", "value": "1"}
    if off in variables:
        return []
    if not variables:
        return [{"op": "add", "path": f"{MAIN}/env", "value": [off]}]
    return [{"op": "add", "path": f"{MAIN}/env/-", "value": off}]


@pytest.fixture(scope="module")
def neighbor(space: Space, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Neighbor]:
    """Run another team's webhook."""
    with running(space.cluster, tmp_path_factory.mktemp("neighbor")) as neighbor:
        neighbor.space = space.name
        yield neighbor


@pytest.fixture(scope="module")
def researcher(space: Space, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write the kubeconfig of an account that may only read pods."""
    file = kubeconfig_of(space, "researcher", tmp_path_factory.mktemp("researcher"))
    allow(space, "researcher", "get", "pods")
    return file


@pytest.fixture(scope="module")
def equipped(space: Space) -> Document:
    """Create a pod that the webhook equips and nobody else changes."""
    space.create(space.pod("equipped", V100))
    return space.get("equipped")


def changed_by(space: Space, neighbor: Neighbor, habit: Habit, name: str) -> None:
    """Create a pod that the neighbor changes, after the webhook's last call."""
    with neighbor.moved_in(AFTER, habit, "IfNeeded"):
        until(lambda: bool(space.proposed(space.pod("probe", V100)) and neighbor.answered))
        space.create(space.pod(name, V100))


def test_a_pod_that_nobody_changed(space: Space, equipped: Document, researcher: Path) -> None:
    """The answer is that of the status, with all rights and with few."""
    assert STATUS in equipped["metadata"]["annotations"]
    for how in ({}, {"kubeconfig": researcher}):
        explanation = explained(space, "equipped", **how)
        assert (explanation["rdma"], explanation["answer"]["code"]) == ("yes", "Equipped")
        assert "ChangedAfterwards" not in texts(explanation)


@pytest.mark.parametrize(
    "expected",
    [
        (
            drops_capability,
            "In container main, securityContext.capabilities.add was IPC_LOCK and is now absent.",
            "unsure",
        ),
        (
            drops_resource,
            f"In container main, resources.limits.{RDMA} was 1 and is now absent.",
            "no",
        ),
        (
            limits_memory,
            "In container main, resources.limits.memory was absent and is now 1Gi.",
            "unsure",
        ),
    ],
    ids=lambda expected: expected[0].__name__,
)
def test_a_webhook_that_comes_later(
    neighbor: Neighbor, space: Space, researcher: Path, expected: tuple[Habit, str, str]
) -> None:
    """The status says yes; the answer names the leaf, what it was, and the webhook.

    Who may read only pods gets a weaker answer, but no tick.
    """
    habit, leaf, rdma = expected
    name = habit.__name__.replace("_", "-")
    changed_by(space, neighbor, habit, name)
    assert '"rdma":"yes"' in space.get(name)["metadata"]["annotations"][STATUS]
    with neighbor.moved_in(AFTER, habit, "IfNeeded"):
        explanation = explained(space, name)
    assert (explanation["rdma"], explanation["answer"]["code"]) == (rdma, "ChangedAfterwards")
    assert leaf in texts(explanation, "applied")
    assert f"webhook neighbor.example.com of {AFTER}" in explanation["answer"]["remedy"]
    seen = explained(space, name, kubeconfig=researcher)
    assert (seen["rdma"], seen["answer"]["code"]) == ("unsure", "ChangedAfterwards")


@pytest.mark.parametrize("configuration", [BEFORE, AFTER])
def test_a_variable_that_another_webhook_added(
    neighbor: Neighbor, space: Space, configuration: str
) -> None:
    """The webhook sees it, and the Job's template does not have it: the remedy names who may."""
    name = f"hardened-{configuration}"
    with neighbor.moved_in(configuration, disables_nccl, "IfNeeded"):
        until(lambda: bool(space.proposed(space.pod("probe", V100)) and neighbor.answered))
        space.create(job(space, name, space.pod("x", V100)))
        pod = pod_of(space, name)
        explanation = explained(space, pod)
    assert (explanation["rdma"], explanation["answer"]["code"]) == ("no", "NcclIbDisabled")
    assert explanation["answer"]["text"].endswith(
        f"NCCL_IB_DISABLE=1 in container main: not in the pod template of Job {name}, so another "
        "webhook or a policy added it when the pod was created."
    )
    assert f"webhook neighbor.example.com of {configuration}" in explanation["answer"]["remedy"]
    space.kubectl("delete", "job", name, "--wait=false")


def rewritten(space: Space, equipped: Document, name: str, **container: Any) -> None:
    """Write a pod that the webhook has left, with another container, past the webhook.

    The API server lets nobody change these fields of a live pod. An administrator may have
    restored it from a backup while the webhook was not installed.
    """
    manifest = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": space.name,
            "annotations": equipped["metadata"]["annotations"],
        },
        "spec": json.loads(json.dumps(equipped["spec"])),
    }
    manifest["spec"]["containers"][0].update(container)
    configuration = json.loads(space.kubectl("get", CONFIGURATION, "--output=json"))
    patch = [{"op": "replace", "path": "/webhooks/0/rules/0/operations", "value": ["DELETE"]}]
    restored = [{**patch[0], "value": configuration["webhooks"][0]["rules"][0]["operations"]}]
    space.kubectl("patch", CONFIGURATION, "--type=json", f"--patch={json.dumps(patch)}")
    try:
        until(lambda: STATUS not in str(space.proposed(space.pod("probe", V100))))
        space.create(manifest)
    finally:
        space.kubectl("patch", CONFIGURATION, "--type=json", f"--patch={json.dumps(restored)}")
        until(lambda: STATUS in str(space.proposed(space.pod("probe", V100))))


def test_a_variable_that_turns_rdma_off(space: Space, equipped: Document, researcher: Path) -> None:
    """The status does not know it; the pod's own environment decides, for everybody."""
    variables = equipped["spec"]["containers"][0]["env"]
    off = {"name": "NCCL_IB_DISABLE", "value": "1"}
    rewritten(space, equipped, "disabled-later", env=[*variables, off])
    for how in ({}, {"kubeconfig": researcher}):
        explanation = explained(space, "disabled-later", **how)
        assert (explanation["rdma"], explanation["answer"]["code"]) == ("no", "ChangedAfterwards")
        assert "sets NCCL_IB_DISABLE=1" in explanation["answer"]["text"]


def test_a_limit_by_a_resize(space: Space) -> None:
    """A live pod may be resized, and then has a limit that it never had."""
    resources = {"limits": {V100: "1"}, "requests": {"cpu": "10m"}}
    space.create(space.pod("resized", V100, container={"resources": resources}))
    limits = {"containers": [{"name": "main", "resources": {"limits": {"memory": "1Gi"}}}]}
    space.kubectl(
        *("patch", "pod", "resized", "--subresource=resize", "--type=strategic"),
        f"--patch={json.dumps({'spec': limits})}",
    )
    explanation = explained(space, "resized")
    assert (explanation["rdma"], explanation["answer"]["code"]) == ("unsure", "ChangedAfterwards")
    assert "resources.limits.memory was absent and is now 1Gi." in texts(explanation, "applied")


def test_a_manifest_of_another_pod(space: Space, equipped: Document) -> None:
    """`kubectl get -o yaml`, applied in a namespace without the label: the status was copied."""
    other = Space(space.cluster, f"{space.name}-plain", space.image)
    make_namespaces(space.cluster, namespace(other.name, None))
    annotations = equipped["metadata"]["annotations"]
    other.create(other.pod("bare", V100, annotations))
    explanation = explained(other, "bare")
    assert (explanation["rdma"], explanation["answer"]["code"]) == ("no", "StatusNotOurs")
    assert f"namespace {other.name} lacks the label" in explanation["answer"]["text"]
    whole = other.pod("whole", annotations=annotations)
    whole["spec"] = equipped["spec"]
    whole["spec"].pop("nodeName", None)
    other.create(whole)
    explanation = explained(other, "whole")
    assert (explanation["rdma"], explanation["answer"]["code"]) == ("unsure", "StatusNotOurs")
    space.cluster.kubectl("delete", "namespace", other.name, "--wait=false")
