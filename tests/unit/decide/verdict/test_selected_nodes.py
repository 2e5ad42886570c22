"""The nodes of the fabric that the pod's own selection and tolerations leave."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tests.builders import READY, V100, container, decision_input, fabric, gpu, pod, quantities
from tests.unit.decide.verdict.judging import judged, verdict_on
from webhook.decide.analysis import DecisionInput
from webhook.model.equivalent_nodes import NO_CLASSES
from webhook.model.facts import Facts
from webhook.model.pod import PodManifest

EQUIPPED = ("yes", "Equipped")
PRODUCT = {"nvidia.com/gpu.product": "Tesla-V100-SXM2"}
FULL = {"nvidia.com/v100": "8", "rdma/v100": "4"}


def node(name: str, *taints: str, offered: Any = FULL, **labels: str) -> dict[str, Any]:
    """Make a Node of the fabric v100-ib, with taints such as dedicated=ml:NoSchedule."""
    written = [_taint(taint) for taint in taints]
    return {
        "kind": "Node",
        "metadata": {"name": name, "labels": {**PRODUCT, **labels}},
        "spec": {"taints": written},
        "status": {"allocatable": offered, "conditions": READY},
    }


def _taint(written: str) -> dict[str, str]:
    pair, effect = written.split(":")
    key, _, value = pair.partition("=")
    return {"key": key, "value": value, "effect": effect}


def knowing(*nodes: dict[str, Any], mode: str = "static") -> DecisionInput:
    """Return a decision input with these nodes."""
    empty = decision_input(defaults={"nodes": mode})
    fabric_index = Facts.from_objects(nodes).fabric_index(empty.configuration)
    return empty._replace(fabric_index=fabric_index)


def requiring(*terms: dict[str, Any]) -> dict[str, Any]:
    """Write a required node affinity."""
    required = {"nodeSelectorTerms": list(terms)}
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}


def label(key: str, *values: str) -> dict[str, Any]:
    """Write a term that requires one of the values of a label."""
    return {"matchExpressions": [{"key": key, "operator": "In", "values": list(values)}]}


POOLS = (node("a", pool="x", zone="1"), node("b", pool="y", zone="2"))
NO_NODE, USE = "no node of fabric v100-ib", "use nvidia.com/gpu.product"
SELECTED = f"{NO_NODE} that the pod selects"
EXCLUDING: list[tuple[str, dict[str, Any], str]] = [
    (
        "nodeSelector",
        {"nodeSelector": {"pool": "l4"}},
        "the pod selects the label pool=l4, but no node of fabric v100-ib has it",
    ),
    (
        "affinity",
        {"affinity": requiring(label("pool", "l4", "l40"))},
        "the pod's affinity for the label pool excludes all nodes of fabric v100-ib",
    ),
    (
        "alternatives",
        {"affinity": requiring(label("pool", "l4"), label("pool", "l40"))},
        "no node of fabric v100-ib meets the pod's node selection",
    ),
    (
        "combination",
        {"nodeSelector": {"pool": "x", "zone": "2"}},
        "no node of fabric v100-ib meets the pod's node selection",
    ),
    (
        "resource",
        {"nodeSelector": {"nvidia.com/v100": "true"}},
        f"the pod selects the label nvidia.com/v100=true ({USE}), but {NO_NODE} has it",
    ),
    (
        "affinity-to-a-resource",
        {"affinity": requiring(label("nvidia.com/v100", "true"))},
        (
            f"the pod's affinity for the label nvidia.com/v100 ({USE}) excludes all nodes of "
            "fabric v100-ib"
        ),
    ),
    (
        "nodeName",
        {"nodeName": "c"},
        "the pod names node c, but fabric v100-ib has no such node",
    ),
]


def test_a_label_with_many_values() -> None:
    """The classes of the nodes lack it, so it excludes no fabric."""
    cluster = knowing(*(node(f"n{i}", rack=f"r{i}") for i in range(33)))
    assert judged(pod(nodeSelector={"rack": "r7"}), cluster) == EQUIPPED


@pytest.mark.parametrize("case", EXCLUDING, ids=lambda case: case[0])
def test_a_selection_that_leaves_no_node(case: tuple[str, dict[str, Any], str]) -> None:
    """Nodes may come, so it is not certain; if they do not, there is no RDMA."""
    _, spec, message = case
    static = verdict_on(pod(**spec), knowing(*POOLS))
    assert (static.rdma, static.because.code) == ("no", "FabricNeverSelected")
    assert static.message == f"{message}, and the configuration sets `nodes: static`"
    elastic = verdict_on(pod(**spec), knowing(*POOLS, mode="elastic"))
    assert (elastic.rdma, elastic.because.code) == ("unsure", "FabricNotSelected")
    assert elastic.message == f"{message} now"


@pytest.mark.parametrize(
    "spec",
    [
        {"nodeSelector": {"pool": "y"}},
        {"affinity": requiring(label("pool", "l4"), label("zone", "1"))},
        {"nodeName": "b"},
    ],
    ids=["nodeSelector", "affinity", "nodeName"],
)
def test_one_node_that_is_left_is_enough(spec: dict[str, Any]) -> None:
    """The other nodes do not matter."""
    assert judged(pod(**spec), knowing(*POOLS)) == EQUIPPED


ADDED_LATER: list[tuple[str, dict[str, Any], str]] = [
    ("kueue", {"labels": {"kueue.x-k8s.io/queue-name": "q"}}, "queue"),
    ("gates", {"schedulingGates": [{"name": "example.org/queue"}]}, "queue"),
    ("scheduler", {"schedulerName": "volcano"}, "scheduler"),
    ("runtime-class", {"runtimeClassName": "nvidia"}, "RuntimeClass"),
]


@pytest.mark.parametrize("case", ADDED_LATER, ids=lambda case: case[0])
def test_what_is_added_after_admission(case: tuple[str, dict[str, Any], str]) -> None:
    """A queue or a RuntimeClass may change the node selection, so it is never a `no`."""
    _, fields, source = case
    verdict = verdict_on(pod(nodeSelector={"pool": "l4"}, **fields), knowing(*POOLS))
    assert (verdict.rdma, verdict.because.code) == ("unsure", "FabricNotSelected")
    assert verdict.message == (
        "the pod selects the label pool=l4, but no node of fabric v100-ib has it; the "
        f"pod's {source} may change the selection"
    )


@pytest.mark.parametrize("scheduler", ["default-scheduler", "", None])
def test_the_usual_scheduler_adds_nothing(scheduler: str | None) -> None:
    """The API server writes its name into each pod that names none."""
    asking = pod(nodeSelector={"pool": "l4"}, schedulerName=scheduler, schedulingGates=[])
    assert judged(asking, knowing(*POOLS)) == ("no", "FabricNeverSelected")


SMALL = (
    node("small", size="s", offered={"nvidia.com/v100": "1", "rdma/v100": "1"}),
    node("large", size="l", offered={"nvidia.com/v100": "8", "rdma/v100": "4"}),
    node("bare", size="b", offered={"nvidia.com/v100": "8"}),
    node("odd", size="o", offered={"rdma/v100": "4"}),
)


@pytest.mark.parametrize(
    ("size", "count", "code", "message"),
    [
        ("b", "1", "ResourceNowhere", f"{SELECTED} offers rdma/v100"),
        (
            "o",
            "1",
            "ResourceNeverBesideGpu",
            f"{SELECTED} offers both nvidia.com/v100 and rdma/v100",
        ),
        (
            "s",
            "2",
            "ResourceExceedsStaticNodes",
            f"the pod requests 2 of nvidia.com/v100, but {SELECTED} offers more than 1",
        ),
    ],
)
def test_the_selected_nodes_lack_something(size: str, count: str, code: str, message: str) -> None:
    """Other nodes of the fabric have it, but the pod does not select them."""
    asking = pod(gpu(count=count), nodeSelector={"size": size})
    verdict = verdict_on(asking, knowing(*SMALL))
    assert (verdict.because.code, verdict.message) == (
        code,
        f"{message}, and the configuration sets `nodes: static`",
    )
    queued = pod(gpu(count=count), nodeSelector={"size": size}, schedulerName="volcano")
    assert verdict_on(queued, knowing(*SMALL)).message == (
        f"{message}; the pod's scheduler may change the selection"
    )


def test_more_gpus_than_a_node_has() -> None:
    """A queue cannot change that: it concerns all nodes of the fabric."""
    verdict = verdict_on(pod(gpu(count="100"), schedulerName="volcano"), knowing(*SMALL))
    assert (verdict.rdma, verdict.because.code) == ("no", "ResourceExceedsStaticNodes")
    assert verdict.message == (
        f"the pod requests 100 of nvidia.com/v100, but {NO_NODE} offers more than 8, and the "
        "configuration sets `nodes: static`"
    )


def test_a_pod_without_rdma_resources() -> None:
    """It has the devices of its node, so amounts do not matter; those of GPUs neither."""
    privileged = gpu(count="100", securityContext={"privileged": True})
    skipping = {"rdma.lab/skip": "rdma-resources"}
    assert judged(pod(privileged, annotations=skipping), knowing(*SMALL)) == EQUIPPED
    privileged["resources"] = quantities({"nvidia.com/v100": "100", "rdma/v100": "0"})
    assert judged(pod(privileged), knowing(*SMALL)) == EQUIPPED


def test_no_node_has_all_that_is_requested() -> None:
    """Each amount by itself is offered, on different nodes."""
    nodes = (
        node("a", offered={"nvidia.com/v100": "8", "rdma/v100": "1"}),
        node("b", offered={"nvidia.com/v100": "1", "rdma/v100": "4"}),
    )
    asking = pod(gpu(count="8"), annotations={"rdma.lab/devices": "4"})
    assert verdict_on(asking, knowing(*nodes)).message == (
        "no node of fabric v100-ib offers 8 of nvidia.com/v100 and 4 of rdma/v100 together, and "
        "the configuration sets `nodes: static`"
    )
    elastic = verdict_on(asking, knowing(*nodes, mode="elastic"))
    assert (elastic.rdma, elastic.because.code) == ("unsure", "ResourceExceedsNodes")
    full = pod(gpu(count="8"), annotations={"rdma.lab/devices": "1"})
    assert judged(full, knowing(*nodes)) == EQUIPPED


DEDICATED = "dedicated=ml:NoSchedule"
OF_GPU = "nvidia.com/v100=present:NoSchedule"
TOLERATION = [{"key": "dedicated", "operator": "Exists"}]


def test_a_taint_of_a_requested_resource_is_not_named() -> None:
    """Kubernetes adds its toleration (ExtendedResourceToleration)."""
    verdict = verdict_on(pod(), knowing(node("a", OF_GPU, "team=ml:NoSchedule")))
    assert "the taint team=ml:NoSchedule" in verdict.message
    assert judged(pod(), knowing(node("a", OF_GPU))) == EQUIPPED


@pytest.mark.parametrize("mode", ["static", "elastic"])
def test_a_taint_that_the_pod_does_not_tolerate(mode: str) -> None:
    """It passes, so it is not certain, even where the nodes are static."""
    cluster = knowing(node("a", DEDICATED), mode=mode)
    verdict = verdict_on(pod(), cluster)
    assert (verdict.rdma, verdict.because.code) == ("unsure", "TaintNotTolerated")
    assert verdict.message == (
        "the pod does not tolerate the taint dedicated=ml:NoSchedule of the nodes of fabric v100-ib"
    )
    assert judged(pod(tolerations=TOLERATION), cluster) == EQUIPPED
    assert judged(pod(), knowing(node("a", DEDICATED), node("b"), mode=mode)) == EQUIPPED


@pytest.mark.parametrize("resource", ["nvidia.com/v100", "rdma/v100"])
def test_a_taint_with_the_name_of_a_requested_resource(resource: str) -> None:
    """The admission plugin ExtendedResourceToleration tolerates it, as clouds do."""
    cluster = knowing(node("a", f"{resource}=present:NoSchedule"))
    assert judged(pod(), cluster) == EQUIPPED
    lasting = knowing(node("a", f"{resource}=present:NoExecute"))
    assert judged(pod(), lasting) == ("unsure", "TaintNotTolerated")


def test_nodes_that_take_no_pods() -> None:
    """Each state is named; a taint that a toleration settles is named first."""
    cordoned = node("a", "node.kubernetes.io/disk-pressure:NoSchedule")
    cordoned["spec"]["unschedulable"] = True
    failing = node("b", DEDICATED)
    failing["status"] = {**failing["status"], "conditions": [{"type": "Ready", "status": "False"}]}
    verdict = verdict_on(pod(), knowing(cordoned, failing))
    assert (verdict.rdma, verdict.because.code) == ("unsure", "NodesUnavailable")
    assert verdict.message == (
        "no node of fabric v100-ib takes the pod now (node.kubernetes.io/disk-pressure, cordoned, "
        "dedicated)"
    )
    tainted = node("c", DEDICATED)
    assert judged(pod(), knowing(cordoned, tainted)) == ("unsure", "TaintNotTolerated")
    assert judged(pod(nodeName="a"), knowing(cordoned)) == EQUIPPED


def test_a_node_written_by_hand_has_no_conditions() -> None:
    """It is judged by its taints alone."""
    by_hand = node("a")
    del by_hand["status"]["conditions"]
    assert judged(pod(), knowing(by_hand)) == EQUIPPED


def test_more_different_nodes_than_are_compared() -> None:
    """Above the limit of classes, all nodes of the fabric count, whatever the pod selects."""
    cluster = knowing(*SMALL)
    unlimited = replace(cluster.fabric_index, node_classes=NO_CLASSES)
    cluster = cluster._replace(fabric_index=unlimited)
    assert judged(pod(nodeSelector={"pool": "l4"}), cluster) == EQUIPPED
    asking = pod(annotations={"rdma.lab/devices": "5"})
    assert judged(asking, cluster) == ("no", "ResourceExceedsStaticNodes")
    assert judged(pod(gpu(count="100")), cluster) == EQUIPPED
    for offered, code in (
        ({"nvidia.com/v100": "8"}, "ResourceNowhere"),
        ({"rdma/v100": "1"}, "ResourceNeverBesideGpu"),
    ):
        poor = knowing(node("a", offered=offered))
        poor = poor._replace(fabric_index=replace(poor.fabric_index, node_classes=NO_CLASSES))
        assert judged(pod(), poor) == ("no", code)


def test_more_devices_than_the_fabric_has_hcas() -> None:
    """This is said where no nodes are known; else their amounts count."""
    two = fabric("two", gpu_resources=V100.gpu_resources, hcas=("a", "b"), resources=V100.resources)
    for devices, expected in (
        ("2", EQUIPPED),
        ("3", ("unsure", "DevicesExceedHCAs")),
    ):
        asking = pod(annotations={"rdma.lab/devices": devices})
        assert judged(asking, decision_input(two)) == expected
        assert judged(asking) == EQUIPPED
    asking = pod(annotations={"rdma.lab/devices": "3"})
    assert verdict_on(asking, decision_input(two)).message == (
        "rdma.lab/devices is 3, but fabric two has 2 HCAs"
    )
    assert judged(pod(), decision_input(two)) == EQUIPPED
    known = Facts.from_objects([node("a")]).fabric_index(decision_input(two).configuration)
    assert judged(asking, decision_input(two, fabric_index=known)) == EQUIPPED


# The GPU that the pod requests.


def requesting(gpu_name: str, **limits: str) -> PodManifest:
    """Make a pod with one of these GPUs, and other limits: `rdma` is the alias rdma/hca."""
    written = {"rdma/hca" if name == "rdma" else name: amount for name, amount in limits.items()}
    return pod(container(resources=quantities({gpu_name: "8", **written})))


def test_the_gpu_of_another_vendor_beside_the_fabric_s_resource() -> None:
    """It may be another pool's own plugin: nothing is renamed, and it is not certain."""
    asking = requesting("amd.com/gpu", rdma="1")
    verdict = verdict_on(asking)
    assert (verdict.rdma, verdict.because.code) == ("unsure", "GPUNotOnFabric")
    assert verdict.message == (
        "rdma/hca in container trainer implies fabric v100-ib, but no known node of the fabric "
        "offers amd.com/gpu, which container trainer requests; if some of its nodes do, set "
        "rdma.lab/fabric"
    )


def test_a_fabric_by_default_does_not_have_the_gpu() -> None:
    """The pod is patched, but not ticked."""
    site = decision_input(defaults={"fabric": "v100-ib"})
    verdict = verdict_on(requesting("nvidia.com/gpu"), site)
    assert (verdict.rdma, verdict.because.code) == ("unsure", "GPUNotOnFabric")
    assert verdict.message == (
        "the pod requests nvidia.com/gpu, which no known node of fabric v100-ib offers"
    )
    assert judged(requesting("nvidia.com/mig-1g.5gb"), site) == EQUIPPED


def test_a_label_with_the_name_of_a_resource() -> None:
    """A product as its value shows that the label of the product is meant; any node refutes it."""
    for key in ("nvidia.com/v100", "rdma/v100", "amd.com/gpu"):
        asking = pod(nodeSelector={key: "NVIDIA-H200"})
        verdict = verdict_on(asking)
        assert (verdict.rdma, verdict.because.code) == ("unsure", "ResourceAsLabel")
        assert verdict.message == (
            f"nodes are selected by the label {key}=NVIDIA-H200; use nvidia.com/gpu.product"
        )
        labeled = knowing(node("a", **{key: "NVIDIA-H200"}))
        assert judged(asking, labeled) == EQUIPPED
    for selector in ({"nvidia.com/v100": "true"}, {"pool": "NVIDIA-H200"}):
        assert judged(pod(nodeSelector=selector)) == EQUIPPED


def test_the_model_is_compared_with_the_nodes_where_these_are_known() -> None:
    """So the verdict says what the nodes have, instead of what the fabric does not list."""
    key = "cloud.google.com/gke-accelerator"
    labeled = knowing(node("a", **{key: "tesla-v100"}), mode="elastic")
    other = pod(nodeSelector={key: "nvidia-l4"})
    assert judged(other, labeled) == ("unsure", "FabricNotSelected")
    assert judged(other) == ("unsure", "GPUModelUnknown")
