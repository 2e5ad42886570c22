"""Nodes that could run a pending pod, and what keeps it from each."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.builders import READY
from tests.unit.diagnose.why.pods import OWNED, chapter_findings, explain, job
from tests.unit.diagnose.why.test_pod_status import SCHEDULER_MESSAGE, pending
from webhook.diagnose.why.evidence import UnfinishedPod
from webhook.model.finding import Finding
from webhook.model.nodes import node_of

V100 = "nvidia.com/v100"
LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
FULL = f"0/2 nodes are available: 2 Insufficient {V100}."
OTHER = "0/2 nodes are available: 2 node(s) were not good."


def node(name: str, labels: Any = None, spec: Any = None, **amounts: str) -> dict[str, Any]:
    """Return a node with these amounts of V100s (`gpus`), RDMA devices and others."""
    keys = {"gpus": V100, "rdma": "rdma/rdma_v100"}
    allocatable = {keys.get(key, key): amount for key, amount in amounts.items()}
    status = {"allocatable": allocatable, "conditions": READY}
    metadata = {"name": name, "labels": labels or {}}
    return {"metadata": metadata, "spec": spec or {}, "status": status}


def now(
    message: str,
    *nodes: dict[str, Any],
    limits: dict[str, str] | None = None,
    pods: tuple[UnfinishedPod, ...] | None = None,
    **spec: Any,
) -> list[Finding]:
    """Explain a pod that requests GPUs, and is pending with this message, among these nodes."""
    amounts = {V100: "8"} if limits is None else limits
    resources = {"limits": amounts, "requests": amounts}
    pod = pending(message, containers=[{"name": "main", "resources": resources}], **spec)
    pod["metadata"].update(OWNED)
    facts = {item["metadata"]["name"]: node_of(item) for item in nodes}
    owner = job()
    owner["spec"]["template"]["spec"]["nodeSelector"] = spec.get("nodeSelector", {})
    explanation = explain(
        pod, nodes=nodes, placement_nodes=facts, unfinished_pods=pods, owners=[owner]
    )
    assert not explanation.well
    return chapter_findings(explanation, "podStatus")


def test_a_resource_that_no_node_offers() -> None:
    """The name is wrong, or the device plugin does not run."""
    (finding,) = now(SCHEDULER_MESSAGE, node("a", gpus="8"), limits={"rdma/none": "1"})[:1]
    assert finding.code == "OfferedNowhere"
    assert "waiting for rdma/none: no node of the cluster offers it." in finding.text
    assert "device plugin" in finding.remedy


def test_a_resource_with_a_similar_name() -> None:
    """The name that nodes offer is likely meant."""
    (finding,) = now(FULL, node("a", gpus="8", cpu="4"), limits={"nvidia.com/V100": "1"})[:1]
    assert f"no node of the cluster offers it (did you mean {V100}?). The" in finding.text
    message = "0/1 nodes are available: 1 Insufficient ephemeral-storage."
    stored = {"ephemeral-storage": "1Gi"}
    (finding,) = now(message, node("a", **{"a.b/ephemeral-storage": "1"}), limits=stored)
    assert finding.code == "OfferedNowhere"
    assert "device plugin" not in finding.remedy
    assert finding.remedy.startswith("Remove the request, or ask the cluster administrator why")
    (finding,) = now(message, node("a", **{"ephemeral-storag": "1"}), limits=stored)
    assert "did you mean" not in finding.text
    unready = node("a", **{"rdma/none": "0"})
    finding, *_ = now(SCHEDULER_MESSAGE, unready, limits={"rdma/none": "1"})
    assert "no node of the cluster offers it." in finding.text


def test_a_request_larger_than_any_node() -> None:
    """The largest node is named, and the remedy is its size, not to wait."""
    nodes = (node("a", gpus="8"), node("b", gpus="64"))
    (finding,) = now(FULL, *nodes, limits={V100: "100"})
    assert (finding.code, finding.level) == ("TooLarge", "error")
    assert f"it requests {V100}: 100, and the largest node (b) has 64 in total." in finding.text
    assert finding.remedy == f"Request at most {V100}: 64 for a pod, and let the job use more pods."


def test_memory_larger_than_any_node() -> None:
    """Amounts of CPU and memory are read only if they are lacking."""
    message = "0/1 nodes are available: 1 Insufficient memory."
    large = node("a", memory="64Gi")
    (finding,) = now(message, large, limits={"memory": "1Ti"})
    assert "it requests memory: 1Ti, and the largest node (a) has 64Gi in total." in finding.text
    (finding,) = now(message, large, limits={"memory": "16Gi"})
    assert finding.code == "Insufficient"
    (finding,) = now(FULL, node("a", gpus="8"), limits={"memory": "1Ti", V100: "8"})
    assert finding.code == "Insufficient"


def test_resources_that_no_node_offers_together() -> None:
    """Each by itself is offered."""
    both = {V100: "1", "rdma/rdma_v100": "1"}
    (finding,) = now(FULL, node("a", gpus="8"), node("b", rdma="63"), limits=both)
    assert finding.code == "NeverTogether"
    assert f"({V100}: 1, rdma/rdma_v100: 1)" in finding.text
    assert "offers the others" not in finding.text
    assert "kubectl describe nodes" in finding.remedy


def test_the_only_resource_that_is_too_large() -> None:
    """Of the nodes that lack only one resource, the one with the largest part of it is named."""
    nodes = (
        node("a", gpus="8", memory="16Gi"),
        node("b", gpus="8", memory="32Gi"),
        node("c", gpus="4", memory="64Gi"),
        node("d", gpus="1", memory="1Ti"),
    )
    limits = {V100: "8", "memory": "128Gi"}
    (finding,) = now("0/4 nodes are available: 4 Insufficient memory.", *nodes, limits=limits)
    assert finding.code == "NeverTogether"
    assert " Node b offers the others, but only memory: 32Gi." in finding.text
    assert finding.remedy == (
        "Request less than memory: 32Gi for a pod, since DaemonSets use some of it (kubectl "
        "describe node b), and let the job use more pods."
    )


def test_a_resource_in_use() -> None:
    """The pods that hold it are named, the largest first, and only on nodes that it may use."""
    pods = (
        UnfinishedPod("lab/small", node="a", amounts={V100: 1}),
        UnfinishedPod("lab/large", node="a", amounts={V100: 7}),
        UnfinishedPod("lab/away", node="c", amounts={V100: 8}),
        UnfinishedPod("lab/none", node="a", amounts={"rdma/rdma_v100": 1}),
    )
    (finding,) = now(FULL, node("a", gpus="8"), pods=pods)
    assert "no node that the pod may use (a) has enough of it free." in finding.text
    assert "It is held by lab/large (7 on a), lab/small (1 on a)." in finding.text
    assert "Wait until one of these pods ends" in finding.remedy
    assert finding.remedy.endswith("lab/large, lab/small.")


def test_a_request_of_several_containers() -> None:
    """The scheduler adds them up, so each by itself may be small enough."""
    containers = [
        {"name": amount, "resources": {"requests": {"cpu": amount}}} for amount in ("1500m", "1")
    ]
    pod = pending("0/1 nodes are available: 1 Insufficient cpu.", containers=containers)
    (finding,) = chapter_findings(explain(pod, nodes=[node("n", cpu="2")]), "podStatus")
    assert "requests cpu: 2500m, and the largest node (n) has 2" in finding.text
    assert finding.remedy.startswith(
        "Request less than cpu: 2 for all containers of a pod together, since DaemonSets"
    )


@pytest.mark.parametrize(
    ("older", "is_of_rollout"),
    [
        ("ReplicaSet serve-1", True),
        ("ReplicaSet serve-2", False),
        ("ReplicaSet serve", False),
        ("ReplicaSet serve-x-1", False),
        ("Job serve-1", False),
        ("", False),
    ],
)
@pytest.mark.parametrize("namespace", ["lab", "other"])
def test_a_rollout_that_waits_for_its_own_pods(
    older: str, is_of_rollout: bool, namespace: str
) -> None:
    """The Deployment keeps its older pods until newer ones are ready, which may wait for them."""
    holder = UnfinishedPod(f"{namespace}/serve-1-x", node="a", amounts={V100: 8}, controller=older)
    owners = [
        {"kind": "ReplicaSet", "metadata": {"name": "serve-2"}},
        {"kind": "Deployment", "metadata": {"name": "serve"}},
    ]
    resources = {"limits": {V100: "8"}, "requests": {V100: "8"}}
    pod = pending(FULL, containers=[{"name": "main", "resources": resources}])
    evidence: dict[str, Any] = {"nodes": [node("a", gpus="8")], "unfinished_pods": (holder,)}
    (finding,) = chapter_findings(explain(pod, owners=owners, **evidence), "podStatus")
    if is_of_rollout and namespace == "lab":
        assert finding.remedy == (
            "Deployment serve keeps its older pods (lab/serve-1-x) until newer ones are ready. If "
            "its rollout is stuck, let it end an older pod first: `kubectl patch deployment "
            'serve -n lab --patch \'{"spec":{"strategy":{"type":"RollingUpdate",'
            '"rollingUpdate":{"maxSurge":0,"maxUnavailable":1}}}}\'`.'
        )
    elif (older, namespace) == ("ReplicaSet serve-2", "lab"):
        assert finding.remedy == (
            "Other pods of Deployment serve hold it (lab/serve-1-x): let each pod request less, "
            "run fewer of these pods, or add nodes with the resource."
        )
    else:
        assert finding.remedy.startswith("Wait until one of these pods ends")
    if older != "ReplicaSet serve-2":
        (alone,) = chapter_findings(explain(pod, owners=owners[:1], **evidence), "podStatus")
        assert alone.remedy.startswith("Wait until one of these pods ends")


def test_a_job_whose_other_pods_hold_the_resource() -> None:
    """They end by themselves."""
    holder = UnfinishedPod("lab/train-x", node="a", amounts={V100: 8}, controller="Job train")
    owners = [{"kind": "Job", "metadata": {"name": "train"}}]
    resources = {"limits": {V100: "8"}, "requests": {V100: "8"}}
    pod = pending(FULL, containers=[{"name": "main", "resources": resources}])
    evidence: dict[str, Any] = {"nodes": [node("a", gpus="8")], "unfinished_pods": (holder,)}
    (finding,) = chapter_findings(explain(pod, owners=owners, **evidence), "podStatus")
    assert finding.remedy.startswith("Wait until one of these pods ends")


def test_many_nodes_are_counted() -> None:
    """Three are named."""
    nodes = [node(f"n{number}", gpus="8") for number in range(11)]
    (finding,) = now(FULL, *nodes)
    assert "(n0, n1, n2 and 8 more)" in finding.text
    assert (
        finding.remedy
        == "Wait until a pod that holds the resource ends, or request a smaller amount."
    )


def test_a_taint() -> None:
    """It is named with the toleration to add; the remedy is never to wait for another job."""
    taints = {"taints": [{"key": "team", "value": "a", "effect": "NoSchedule"}]}
    (finding,) = now(OTHER, node("a", spec=taints, gpus="8"), node("cpu"))
    assert (finding.code, finding.level) == ("BlockedByTaint", "error")
    assert "nodes that could run it have the taint team=a:NoSchedule" in finding.text
    assert "(a)" in finding.text
    assert finding.remedy == (
        "If the pod may run on these nodes, add to tolerations in the pod template of Job train: "
        "{key: team, operator: Equal, value: a, effect: NoSchedule}. If the taint is no longer "
        "needed, remove it: `kubectl taint node a team:NoSchedule-`."
    )
    exists = {"taints": [{"key": "team", "effect": "NoExecute"}]}
    (finding,) = now(OTHER, node("a", spec=exists, gpus="8"))
    assert "{key: team, operator: Exists, effect: NoExecute}" in finding.remedy


def test_a_tolerated_taint() -> None:
    """It is no reason."""
    taints = {"taints": [{"key": "team", "value": "a", "effect": "NoSchedule"}]}
    tolerations = [{"key": "team", "operator": "Exists"}]
    (finding,) = now(FULL, node("a", spec=taints, gpus="8"), tolerations=tolerations)
    assert finding.code == "Insufficient"


def test_a_taint_of_kubernetes() -> None:
    """Nobody removes it by hand."""
    taints = {"taints": [{"key": "node.kubernetes.io/disk-pressure", "effect": "NoSchedule"}]}
    (finding,) = now(OTHER, node("a", spec=taints, gpus="8"))
    assert finding.code == "BlockedByTaint"
    assert "kubectl describe node a" in finding.remedy
    assert "toleration" not in finding.remedy


def test_a_cordon() -> None:
    """The remedy is to uncordon the node; other nodes that are full are named as well."""
    cordoned = node("a", spec={"unschedulable": True}, gpus="8")
    (finding,) = now(OTHER, cordoned)
    assert finding.code == "BlockedByCordon"
    assert "nodes that could run it are cordoned (a)." in finding.text
    assert finding.remedy == "Once maintenance of these nodes is over, run `kubectl uncordon a`."
    full, blocked = now(FULL, cordoned, node("b", gpus="8"))
    assert (full.code, blocked.code) == ("Insufficient", "BlockedByCordon")
    assert "(b) has enough" in full.text


def test_a_node_that_is_not_ready() -> None:
    """The kubelet is the place to look."""
    broken = node("a", gpus="8")
    broken["status"]["conditions"] = [{"type": "Ready", "status": "False"}]
    (finding,) = now(OTHER, broken)
    assert finding.code == "BlockedByUnreadiness"
    assert "kubectl describe node a" in finding.remedy


def test_a_cordoned_node_with_another_taint() -> None:
    """The state of Kubernetes is named first."""
    taints = [{"key": "a", "effect": "NoSchedule"}]
    (finding,) = now(OTHER, node("a", spec={"unschedulable": True, "taints": taints}, gpus="8"))
    assert finding.code == "BlockedByCordon"


def test_the_control_plane() -> None:
    """Its taint counts only if no other node could run the pod."""
    taint = {"taints": [{"key": "node-role.kubernetes.io/control-plane", "effect": "NoSchedule"}]}
    (finding,) = now(OTHER, node("master", spec=taint), limits={})
    assert "node-role.kubernetes.io/control-plane:NoSchedule" in finding.text
    cordoned = node("a", spec={"unschedulable": True})
    (finding,) = now(OTHER, node("master", spec=taint), cordoned, limits={})
    assert finding.code == "BlockedByCordon"


def test_a_node_selector() -> None:
    """The label is named, with the values that the right nodes have."""
    nodes = (node("a", {"pool": "x"}, gpus="8"), node("b", {"pool": "b"}))
    (finding,) = now(FULL, *nodes, nodeSelector={"pool": "b"})
    assert (finding.code, finding.level) == ("BlockedBySelection", "error")
    assert (
        "the nodes that offer what it requests (a) do not have the label pool=b of its "
        "nodeSelector; they have pool: x."
    ) in finding.text
    assert "Correct nodeSelector in the pod template of Job train" in finding.remedy
    (finding,) = now(FULL, node("a", gpus="8"), nodeSelector={"pool": "b"})
    assert "; none has it." in finding.text


def test_a_label_that_somebody_added() -> None:
    """The manifest that was applied has none, so nothing in it can be corrected."""
    pod = pending(FULL, nodeSelector={"pool": "b"})
    pod["metadata"]["annotations"][LAST_APPLIED] = json.dumps({"spec": {}})
    nodes = [node("a", gpus="8")]
    facts = {"a": node_of(nodes[0])}
    kata = "RuntimeClass kata (scheduling.nodeSelector)"
    explanation = explain(pod, nodes=nodes, placement_nodes=facts, runtime_class=kata)
    (finding,) = chapter_findings(explanation, "podStatus")
    assert finding.code == "BlockedBySelection"
    assert finding.remedy == (
        "The manifest that was applied does not have it: another webhook or a policy added it. "
        "Check what changes pods at admission: RuntimeClass kata (scheduling.nodeSelector). "
        "Correct the one that added it, and create the pod again. If the label is missing by "
        "mistake, set it: `kubectl label node NODE pool=b`."
    )


def affinity(*keys: str) -> dict[str, Any]:
    """Return a required affinity, with a term for each label key."""
    terms = [
        {"matchExpressions": [{"key": key, "operator": "In", "values": ["b"]}]} for key in keys
    ]
    return {
        "nodeAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}
        }
    }


def test_an_affinity_to_another_pool() -> None:
    """The remedy is to correct it, though the other pool lacks the resource, too."""
    nodes = (node("a", {"pool": "x"}, gpus="8"), node("b", {"pool": "b"}))
    message = f"0/2 nodes are available: 1 Insufficient {V100}, 1 node(s) didn't match Pod's node "
    (finding,) = now(message, *nodes, affinity=affinity("pool"))
    assert finding.code == "BlockedBySelection"
    assert "do not match its affinity for the label pool; they have pool: x." in finding.text
    (finding,) = now(message, *nodes, affinity=affinity("pool", "zone"))
    assert "do not match its node affinity, nodeSelector or nodeName." in finding.text


def test_another_reason() -> None:
    """If the nodes explain nothing, the scheduler's message does."""
    (finding,) = now(OTHER, node("a", gpus="8"))
    assert finding.code == "Unschedulable"
    assert finding.text.endswith(f"The scheduler reports: {OTHER}")
    assert finding.remedy.startswith("Correct the problem that the scheduler's message reports")


@pytest.mark.parametrize(
    ("reason", "cause", "remedy"),
    [
        ("didn't have free ports for the requested pod ports", "host port that", "another port"),
        ("didn't match pod anti-affinity rules", "podAntiAffinity", "the other pod ends"),
        ("didn't satisfy existing pods anti-affinity rules", "podAntiAffinity", "Correct the rule"),
        ("didn't match pod affinity rules", "no node runs a pod", "start that pod first"),
        (
            "didn't match pod topology spread constraints (missing required label)",
            "its topol",
            "Key",
        ),
        ("has pod using PersistentVolumeClaim with ReadWriteOncePod", "whose access mode", "Wait"),
    ],
)
def test_what_else_the_scheduler_reports(reason: str, cause: str, remedy: str) -> None:
    """Each of the usual reasons is named, with a remedy of its own."""
    message = f"0/1 nodes are available: 1 node(s) {reason}."
    (finding,) = now(message, node("a", gpus="8"))
    assert finding.code == "Unschedulable"
    start, _, report = finding.text.partition(" The scheduler reports: ")
    assert start.startswith("The pod is pending, since ")
    assert cause in start
    assert "; and " not in start
    assert report == message
    assert remedy in finding.remedy
    assert len(finding.remedy.split(". ")) == 1


def test_a_long_message_of_the_scheduler() -> None:
    """All of it is read, and its start and end are shown."""
    taints = ", ".join(
        f"1 node(s) had untolerated taint {{team{number}: x}}" for number in range(9)
    )
    message = f"0/30 nodes are available: {taints}, 9 Insufficient rdma/hca, {taints}."
    (finding,) = now(message, node("a", gpus="8"), limits={"rdma/hca": "1"})[:1]
    assert finding.code == "OfferedNowhere"
    assert "waiting for rdma/hca: no node" in finding.text
    assert len(finding.text) < 600


def test_two_reasons_of_the_scheduler() -> None:
    """Both are named."""
    message = "0/2 nodes are available: 1 didn't have free ports, 1 didn't match pod affinity rules"
    (finding,) = now(message, node("a", gpus="8"))
    assert "; and no node runs a pod that its podAffinity requires." in finding.text
    assert finding.remedy.startswith("Choose another port")
    assert finding.remedy.endswith("Correct the rule, or start that pod first.")


def test_huge_pages() -> None:
    """No device plugin offers them."""
    message = "0/1 nodes are available: 1 Insufficient hugepages-2Mi."
    (finding,) = now(message, node("a", gpus="8"), limits={"hugepages-2Mi": "1Gi"})
    assert finding.code == "OfferedNowhere"
    assert finding.remedy.startswith("Ask the cluster administrator to reserve huge pages")


@pytest.mark.parametrize(
    ("reason", "code", "says"),
    [
        ("3 node(s) didn't match Pod's node affinity/selector", "BlockedBySelection", "excludes"),
        ("3 node(s) were unschedulable", "BlockedByCordon", "nodes are cordoned"),
        ("3 node(s) had untolerated taint(s)", "BlockedByTaint", "nodes have a taint, which"),
        ("3 node(s) had untolerated taint {a: }", "BlockedByTaint", "nodes have the taint a, "),
        ("3 node(s) had untolerated taint {a: b}", "BlockedByTaint", "nodes have the taint a=b, "),
        ("3 x", "Unschedulable", "The pod is pending. The scheduler reports"),
    ],
)
def test_without_the_right_to_read_nodes(reason: str, code: str, says: str) -> None:
    """The message of the scheduler is all that is known."""
    message = (
        "0/4 nodes are available: 1 node(s) had untolerated taint "
        f"{{node-role.kubernetes.io/control-plane: }}, {reason}."
    )
    (finding,) = chapter_findings(explain(pending(message)), "podStatus")
    assert (finding.code, finding.level) == (code, "error")
    assert says in finding.text


@pytest.mark.parametrize(
    "broken", [{"nodeSelector": "x"}, {"affinity": {"nodeAffinity": "x"}}, {"containers": "x"}]
)
def test_pods_of_any_shape(broken: dict[str, Any]) -> None:
    """A file may contain anything."""
    pod = pending(FULL, **broken)
    item = node("a", gpus="8")
    for facts in ({"a": node_of(item)}, {}):
        explanation = explain(pod, nodes=[item], placement_nodes=facts)
        assert chapter_findings(explanation, "podStatus")


def test_nodes_of_any_shape() -> None:
    """An amount that is no quantity counts as zero."""
    item = {"metadata": {"name": "a"}, "status": {"allocatable": {V100: "x"}}}
    pod = pending(FULL)
    (finding,) = chapter_findings(explain(pod, nodes=[item]), "podStatus")
    assert finding.code == "OfferedNowhere"


def test_a_node_without_facts() -> None:
    """A node that cannot be judged may take the pod, so the others are no cause."""
    pools = [node("a", {"pool": "x"}, gpus="8"), node("b", gpus="8")]
    resources = {"requests": {V100: "8"}, "limits": {V100: "8"}}
    containers = [{"name": "main", "resources": resources}]
    pod = pending(FULL, containers=containers, nodeSelector={"pool": "b"})
    explanation = explain(pod, nodes=pools, placement_nodes={"a": node_of(pools[0])})
    (finding,) = chapter_findings(explanation, "podStatus")
    assert finding.code == "Insufficient"
    assert "(b) has enough of it free" in finding.text
