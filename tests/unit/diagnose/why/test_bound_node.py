"""The node of a pod settles what was uncertain about nodes at admission."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest

from tests.builders import decide_on, decision_input, env, fabrics, gpu
from tests.builders import pod as new_pod
from tests.unit.diagnose.why.pods import LATER, chapter_findings
from tests.unit.diagnose.why.test_answer import RDMA, log
from tests.unit.diagnose.why.test_comparison import KNOWN_CONFIGURATION, Item, explain_with, main
from webhook.diagnose.why.evidence import ContainerProcesses, MemoryRights
from webhook.diagnose.why.explanation import Explanation
from webhook.model.fabric import CompiledConfiguration
from webhook.model.nodes import Node, build_fabric_index, node_of

OFFERED = {"nvidia.com/v100": "8", "rdma/v100": "1"}
LABELS = {"nvidia.com/gpu.product": "Tesla-V100-SXM2-32GB"}
CORDONED: dict[str, Any] = {"unschedulable": True}


def node(resources: dict[str, str] = OFFERED, labels: dict[str, str] = LABELS, **spec: Any) -> Node:
    """Return a node, by default of the fabric v100-ib."""
    return node_of(
        {"metadata": {"labels": labels}, "spec": spec, "status": {"allocatable": resources}}
    )


V100_NODE = node()
H100_NODE = node(
    {"nvidia.com/h100": "8", "nvidia.com/rail0": "8"},
    {"nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3"},
)
NODES = {
    "cordoned": (node(**CORDONED), {}, "NodesUnavailable"),
    "tainted": (
        node(taints=[{"key": "team", "effect": "NoSchedule"}]),
        {},
        "TaintNotTolerated",
    ),
    "unlabeled": (node(), {"nodeSelector": {"pool": "a"}}, "FabricNotSelected"),
    "of another fabric": (H100_NODE, {}, "FabricWithoutNodes"),
    "without a plugin": (node({"nvidia.com/v100": "8"}), {}, "ResourceNotOffered"),
}


def admitted(
    first: Node,
    spec: Item | None = None,
    configuration: CompiledConfiguration = KNOWN_CONFIGURATION,
    *containers: Item,
    **state: Any,
) -> Item:
    """Return a pod that was admitted while the cluster had one node, and is bound by now."""
    members = configuration.fabrics.values()
    nodes = build_fabric_index({"node-1": first}, configuration)
    cluster = decision_input(
        *members, fabric_index=nodes, defaults={"nodes": configuration.defaults.nodes}
    )
    pod: Item = deepcopy(decide_on(new_pod(*containers, **(spec or {})), cluster).pod)
    pod["spec"]["nodeName"] = "node-1"
    return pod | {"kind": "Pod", "status": {"phase": "Running", **state}}


def bound(
    pod: Item,
    cluster_configuration: CompiledConfiguration | None = KNOWN_CONFIGURATION,
    *,
    nodes: tuple[Item, ...] | None = None,
    **placement_nodes: Node,
) -> Explanation:
    """Explain a pod, with the facts of nodes by now; by default, of one of the fabric."""
    facts = {name.replace("_", "-"): facts for name, facts in placement_nodes.items()}
    return explain_with(
        pod, cluster_configuration, nodes=nodes, placement_nodes=facts or {"node-1": V100_NODE}
    )


@pytest.mark.parametrize("case", NODES)
def test_a_node_of_the_fabric(case: str) -> None:
    """The doubt of admission ends, whatever the nodes were like; its remarks go, too."""
    first, spec, code = NODES[case]
    pod = admitted(first, spec)
    assert code in pod["metadata"]["annotations"]["rdma.lab/status"]
    explanation = bound(pod)
    assert (explanation.rdma, explanation.answer.code) == ("yes", "Equipped")
    assert explanation.well
    assert explanation.answer.text == (
        "The pod is equipped for RDMA over v100-ib: device, memory, network and environment are "
        "right for RDMA, assuming that the image runs as root. The pod is on node node-1, which "
        "belongs to the fabric."
    )
    assert explanation.answer.remedy == ""
    remarks = [finding.code for finding in chapter_findings(explanation, "applied")]
    assert "SelectorUnknown" not in remarks


def test_a_verdict_on_static_nodes() -> None:
    """A node of the fabric disproves a `no`, too."""
    static = fabrics(defaults={"nodes": "static"})
    pod = admitted(H100_NODE, configuration=static)
    assert '"FabricNowhere"' in pod["metadata"]["annotations"]["rdma.lab/status"]
    assert bound(pod, static).rdma == "yes"


def test_another_doubt_behind_it() -> None:
    """Admission names one doubt; the others then decide."""
    trainer = gpu("trainer", securityContext={"runAsUser": 1000})
    explanation = bound(admitted(node(**CORDONED), None, KNOWN_CONFIGURATION, trainer))
    assert (explanation.rdma, explanation.answer.code) == ("unsure", "MemlockUnknown")
    assert explanation.answer.text.endswith("is on node node-1, which belongs to the fabric.")


def test_a_node_of_another_fabric() -> None:
    """The pod has no RDMA there; a remark about its selection stays."""
    explanation = bound(admitted(*NODES["unlabeled"][:2]), node_1=H100_NODE)
    assert (explanation.rdma, explanation.answer.level) == ("no", "error")
    assert (explanation.answer.code, explanation.answer.text) == (
        "NodeOutsideFabric",
        "No RDMA: the pod is on node node-1, which belongs to h100-roce, not to fabric v100-ib.",
    )
    assert explanation.answer.remedy.startswith("Once a node of the fabric can run the pod")
    remarks = [finding.code for finding in chapter_findings(explanation, "applied")]
    assert "SelectorUnknown" in remarks


def test_a_node_of_no_fabric() -> None:
    """The site may have described the fabric's nodes wrongly, so that is no `no`."""
    explanation = bound(admitted(node(**CORDONED)), node_1=node(labels={}))
    assert (explanation.rdma, explanation.answer.code) == ("unsure", "NodeOutsideFabric")
    assert explanation.answer.text == (
        "RDMA over v100-ib is not certain: the pod is on node node-1, which belongs to no fabric."
    )


def test_a_node_that_was_not_read() -> None:
    """The doubt stays, and its end is in reach."""
    explanation = bound(admitted(node(**CORDONED)), node_2=V100_NODE)
    assert (explanation.rdma, explanation.answer.code) == ("unsure", "NodesUnavailable")
    assert explanation.answer.text == (
        "RDMA over v100-ib is not certain: each of the fabric's nodes that could otherwise run "
        "the pod is cordoned, not ready or tainted by Kubernetes. The pod is now on node "
        "node-1, but whether this node belongs to the fabric is unknown, since the node could not "
        "be read."
    )
    assert explanation.answer.remedy == (
        "Ask the cluster administrator whether node node-1 belongs to fabric v100-ib: `kubectl get "
        "node node-1 --show-labels`. If it does, no action is needed."
    )


def test_a_configuration_that_is_not_known() -> None:
    """Then neither the node's fabric is known; a `no` about nodes becomes a doubt."""
    static = fabrics(defaults={"nodes": "static"})
    pod = admitted(H100_NODE, configuration=static)
    explanation = bound(pod, None)
    assert (explanation.rdma, explanation.answer.level) == ("unsure", "unsure")
    assert "since the configuration of the admission could not be read, or has changed since." in (
        explanation.answer.text
    )


def test_a_node_that_does_not_exist() -> None:
    """Nobody has to be asked whether it belongs to the fabric."""
    pod = admitted(node(**CORDONED), phase="Pending")
    answer = bound(pod, node_2=V100_NODE, nodes=()).answer
    assert answer.text.endswith("or tainted by Kubernetes. There is no node node-1.")
    assert answer.remedy.startswith("Correct or remove nodeName")


@pytest.mark.parametrize(
    "state",
    [
        {"phase": "Failed", "reason": "OutOfnvidia.com/v100"},
        {"phase": "Pending", "nodeName": ""},
    ],
    ids=["rejected", "not bound"],
)
def test_pods_without_a_settled_node(state: dict[str, str]) -> None:
    """A pod that the kubelet rejected, or that has no node, shows nothing about its placement."""
    pod = admitted(node(**CORDONED), phase=state["phase"])
    pod["spec"]["nodeName"] = state.get("nodeName", "node-1")
    explanation = bound(pod)
    assert (explanation.rdma, explanation.answer.code) == ("unsure", "NodesUnavailable")
    assert "node-1" not in explanation.answer.text


def test_a_failed_run() -> None:
    """Its containers ran on the node."""
    statuses = [{"name": "trainer", "state": {"terminated": {"exitCode": 1}}}]
    pod = admitted(node(**CORDONED), phase="Failed", containerStatuses=statuses)
    assert bound(pod).rdma == "yes"


def test_verdicts_about_other_things() -> None:
    """They stay, on any node."""
    pod = admitted(
        V100_NODE, None, KNOWN_CONFIGURATION, gpu("trainer", env=env(NCCL_IB_DISABLE="1"))
    )
    assert bound(pod, node_1=H100_NODE).answer.code == "NcclIbDisabled"


def test_an_equipped_pod_on_a_node_elsewhere() -> None:
    """The scheduler may have put it there: nothing at admission kept it on its fabric."""
    pod = admitted(V100_NODE)
    assert '"Equipped"' in pod["metadata"]["annotations"]["rdma.lab/status"]
    of_another, of_none = bound(pod, node_1=H100_NODE), bound(pod, node_1=node(labels={}))
    assert (of_another.rdma, of_another.answer.code) == ("no", "NodeOutsideFabric")
    assert (of_none.rdma, of_none.answer.level) == ("unsure", "unsure")
    assert of_none.answer.text == (
        "RDMA over v100-ib is not certain: the pod is on node node-1, which belongs to no fabric."
    )


def test_an_equipped_pod_on_a_node_that_says_nothing() -> None:
    """The verdict stays, without a word on the node: nothing about it was in doubt."""
    pod = admitted(V100_NODE)
    as_admitted = bound(pod).answer
    assert as_admitted.level == "ok"
    assert "node-1" not in as_admitted.text
    assert bound(pod, node_2=H100_NODE).answer == as_admitted
    assert bound(pod, None, node_1=H100_NODE).rdma == "yes"
    rejected = pod | {"status": {"phase": "Failed"}}
    assert bound(rejected, node_1=H100_NODE).answer.code == "Equipped"
    remark = admitted(*NODES["unlabeled"][:2])
    remark["metadata"]["annotations"]["rdma.lab/status"] = remark["metadata"]["annotations"][
        "rdma.lab/status"
    ].replace('"unsure","because":"FabricNotSelected"', '"yes","because":"Equipped"')
    assert '"yes"' in remark["metadata"]["annotations"]["rdma.lab/status"]
    remarks = [finding.code for finding in chapter_findings(bound(remark), "applied")]
    assert "SelectorUnknown" not in remarks


def test_a_doubt_about_other_things_on_a_node_elsewhere() -> None:
    """Another fabric is worse than the doubt; no fabric is another doubt, and the first stays."""
    pod = admitted(
        V100_NODE, None, KNOWN_CONFIGURATION, gpu("trainer", securityContext={"runAsUser": 1000})
    )
    assert bound(pod, node_1=H100_NODE).answer.code == "NodeOutsideFabric"
    assert bound(pod, node_1=node(labels={})).answer.code == "MemlockUnknown"


def test_use_on_a_node_elsewhere() -> None:
    """The log shows that the node has RDMA."""
    pod = admitted(V100_NODE)
    facts = {"node-1": H100_NODE}
    assert (
        explain_with(pod, KNOWN_CONFIGURATION, placement_nodes=facts, logs=(log(RDMA),)).answer.code
        == "Equipped"
    )


def test_a_pod_that_cannot_be_judged_any_more() -> None:
    """Its node ends the doubt about nodes, but the rest is unknown."""
    pod = admitted(node(**CORDONED))
    pod["metadata"]["annotations"]["rdma.lab/fabric"] = "h100-roce"
    explanation = bound(pod)
    assert (explanation.rdma, explanation.answer.level) == ("unsure", "unsure")
    assert explanation.answer.text.endswith("is on node node-1, which belongs to the fabric.")


def test_a_no_on_static_nodes_for_a_pod_that_cannot_be_judged() -> None:
    """Its node disproves the `no`, but the rest is unknown."""
    static = fabrics(defaults={"nodes": "static"})
    pod = admitted(H100_NODE, configuration=static)
    pod["metadata"]["annotations"]["rdma.lab/fabric"] = "h100-roce"
    explanation = bound(pod, static)
    assert (explanation.rdma, explanation.answer.level) == ("unsure", "unsure")
    assert explanation.answer.text.endswith("is on node node-1, which belongs to the fabric.")


@pytest.mark.parametrize(
    ("rights", "rdma", "code"),
    [
        (MemoryRights(65532, False, 64), "no", "CannotLockMemory"),
        (MemoryRights(0, True, 64), "yes", "Equipped"),
    ],
)
def test_rights_on_a_node_of_the_fabric(rights: MemoryRights, rdma: str, code: str) -> None:
    """They settle what the verdict of now assumes, although that of admission assumed nothing."""
    shell = ContainerProcesses("trainer", rights=rights)
    pod = admitted(node(**CORDONED))
    explanation = explain_with(
        pod, KNOWN_CONFIGURATION, placement_nodes={"node-1": V100_NODE}, processes=(shell,)
    )
    assert (explanation.rdma, explanation.answer.code) == (rdma, code)
    assert "assuming" not in explanation.answer.text


def test_rights_on_a_node_elsewhere() -> None:
    """Of two equally bad answers, that on the rights counts."""
    limited = ContainerProcesses("trainer", rights=MemoryRights(65532, False, 64))
    facts = {"node-1": H100_NODE}
    pod = admitted(V100_NODE)
    explanation = explain_with(
        pod, KNOWN_CONFIGURATION, placement_nodes=facts, processes=(limited,)
    )
    assert explanation.answer.code == "CannotLockMemory"


def test_an_unread_script_on_a_node_of_the_fabric() -> None:
    """The answer names the script, which it assumes to be harmless."""
    volumes = [{"name": "v", "configMap": {"name": "entry"}}]
    mounts = [{"name": "v", "mountPath": "/scripts"}]
    trainer = gpu("trainer", command=["bash", "/scripts/a.sh"], volumeMounts=mounts)
    pod = admitted(node(**CORDONED), {"volumes": volumes}, KNOWN_CONFIGURATION, trainer)
    clause = "that key a.sh of ConfigMap entry, which was not read, does not turn RDMA off."
    assert f"and {clause} The pod is on node node-1" in bound(pod).answer.text
    changed = explain_with(
        pod,
        KNOWN_CONFIGURATION,
        placement_nodes={"node-1": V100_NODE},
        changed_config_maps={"entry": LATER},
    )
    assert (changed.rdma, changed.answer.code) == ("unsure", "ConfigMapChanged")


def test_a_change_decides_first() -> None:
    """What was removed after the call is still missing."""
    pod = admitted(node(**CORDONED))
    main(pod)["securityContext"] = {}
    assert bound(pod).rdma == "unsure"
