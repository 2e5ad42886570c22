"""What keeps the node of a pod from running it: the node itself, a volume, the pod's isolation.

Sources, in Kubernetes 1.34 and 1.36: pkg/kubelet/events; the messages of pkg/volume/configmap,
secret, projected and hostpath; pkg/controller/util/node (MarkPodsNotReady sets the pod's condition
Ready to False, with neither a reason nor a message). Handlers: containerd and CRI-O.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator

from webhook.diagnose.why.evidence import PodEvidence
from webhook.diagnose.why.messages import cut
from webhook.diagnose.why.pod_template import template_title
from webhook.kube.objects import Event, PodRecord
from webhook.model.finding import Code, Finding

NODE_NOT_READY = Code(
    "NodeNotReady",
    "The pod's node is not ready, or does not exist.",
    "Ask the cluster administrator why the node is not ready or does not exist. If you cannot "
    "wait, create the pod again on another node.",
)
NOT_SET_UP = Code(
    "NotSetUp",
    "The node cannot set up the pod's network, volumes or sandbox.",
    "If the kubelet's message blames the pod, correct the pod. Otherwise, ask the cluster "
    "administrator about the node's network plugin, storage and container runtime.",
)
CODES = (NODE_NOT_READY, NOT_SET_UP)

#: Events of the kubelet about a pod that it cannot start.
SETUP_EVENTS = ("FailedCreatePodSandBox", "FailedMount", "FailedAttachVolume", "FailedMapVolume")
_OTHER_NODE = (
    "Correct or remove nodeName, or create the pod again if its node has been removed: `kubectl "
    "get nodes`."
)
#: The Event of the node controller when it sets the condition Ready of a pod to False.
_NODE_EVENT = "NodeNotReady"
_RETRIED = "The kubelet then starts the pod automatically."
_MISSING_OBJECT = re.compile(r'(configmap|secret) "([^"]{1,253})" not found')
_HOST_PATH = re.compile(r"hostPath type check failed: (\S{1,1000}) (?:is|does) not ")
_HANDLER = re.compile(
    r'no runtime for "([^"]{1,253})" is configured|runtime handler (\S{1,253}) from'
)
_KINDS = {"configmap": "ConfigMap", "secret": "Secret"}


def node_problem(evidence: PodEvidence) -> Finding | None:
    """Return a finding on a node that cannot run the pod, as far as the nodes were read."""
    name = evidence.pod.spec.node_name
    if evidence.nodes is None:
        return _reported_problem(evidence, name)
    node = next((node for node in evidence.nodes if node.metadata.name == name), None)
    if node is None:
        text = f"There is no node {name}."
        return (
            NODE_NOT_READY.finding("error", text, _OTHER_NODE)
            if evidence.includes_own_node
            else None
        )
    ready = node.status.condition("Ready")
    if ready.status not in ("False", "Unknown"):
        return None
    text = f"Node {name} is not ready ({ready.reason}): {cut(ready.message)}"
    return NODE_NOT_READY.finding("error", text, _unready_remedy(evidence))


def _reported_problem(evidence: PodEvidence, name: str) -> Finding | None:
    """Return the finding of the node controller on a pod that was ready."""
    ready = evidence.pod.status.condition("Ready")
    is_marked = ready.status == "False" and not ready.message
    if is_marked and any(event.reason == _NODE_EVENT for event in evidence.events or ()):
        text = f"Node {name} is not ready: it has not reported for a while."
        return NODE_NOT_READY.finding("error", text, _unready_remedy(evidence))
    return None


def _unready_remedy(evidence: PodEvidence) -> str:
    """Return what to do: only the kubelet ends the deletion of a pod, unless it is forced."""
    if not evidence.pod.metadata.is_deleted:
        return NODE_NOT_READY.remedy
    arguments = shlex.join([evidence.name, "-n", evidence.namespace_name, "--force"])
    return (
        "The deletion waits for the node. If its machine is off, run `kubectl delete pod "
        f"{arguments}`. A process that still runs there would keep running alongside the next pod."
    )


def is_being_set_up(pod: PodRecord) -> bool:
    """Return whether a pod has a node that has not yet prepared its network and its volumes."""
    is_prepared = pod.status.condition("PodReadyToStartContainers").status == "True"
    return pod.status.phase == "Pending" and bool(pod.spec.node_name) and not is_prepared


def setup_findings(evidence: PodEvidence) -> Iterator[Finding]:
    """Yield what the kubelet reports about a pod that it cannot set up, the newest of each."""
    if not is_being_set_up(evidence.pod):
        return
    newest = {
        event.reason: event
        for event in evidence.events or ()
        if event.reason in SETUP_EVENTS and event.about.kind == "Pod"
    }
    for event in newest.values():
        yield _setup_finding(evidence, event)


def _setup_finding(evidence: PodEvidence, event: Event) -> Finding:
    cause, remedy = _missing(evidence, event.text)
    text = f"The node cannot set up the pod{cause} (Event {event.reason}): {cut(event.text)}"
    return NOT_SET_UP.finding("error", text, remedy or NOT_SET_UP.remedy)


def _missing(evidence: PodEvidence, message: str) -> tuple[str, str]:
    """Return a clause on what the pod lacks, and the remedy; "" for both if that is unknown."""
    node, template = evidence.pod.spec.node_name, template_title(evidence)
    if match := _MISSING_OBJECT.search(message):
        kind, name, namespace = _KINDS[match[1]], match[2], evidence.namespace_name
        remedy = f"Create {kind} {name} in namespace {namespace}, or correct the volume in"
        return f", since {kind} {name} does not exist", f"{remedy} {template}. {_RETRIED}"
    if match := _HOST_PATH.search(message):
        path = match[1]
        remedy = f"Mount or create {path} on node {node}, or correct hostPath in {template}."
        return f", since its volume needs {path} on the node", f"{remedy} {_RETRIED}"
    if match := _HANDLER.search(message):
        handler = match[1] or match[2]
        remedy = (
            f"Ask the cluster administrator to configure the runtime handler {handler} on node "
            f"{node}. {_RETRIED} Or correct runtimeClassName in {template}: `kubectl "
            "get runtimeclasses`."
        )
        return f", since its runtime has no handler {handler}", remedy
    return "", ""
