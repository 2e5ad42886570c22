"""The pods of a pair: each on its node, with the annotations by which the webhook equips it.

A node is chosen by affinity, as a DaemonSet does it, so that the scheduler and the device plugin
still decide whether the pod fits there.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib.resources import files
from typing import Literal, TypeVar

from webhook.diagnose.verify.results import NodePair
from webhook.diagnose.verify.runs.plan import RunEnvironment, RunPlan, RunPods
from webhook.errors import ClusterError
from webhook.kube.api import RefusedError
from webhook.kube.objects import ContainerStatus, Pod
from webhook.kube.records import Record, Text
from webhook.model.annotations import DEVICES, ENABLE, FABRIC, STATUS
from webhook.model.json import JsonObject

#: The labels of all pods of all runs, and the one whose value is the name of a run.
NAME_LABEL, RUN_LABEL = "app.kubernetes.io/name", "app.kubernetes.io/instance"
VERIFY = "rdma-webhook-verify"
#: The container of a pod that runs perftest, and of one that runs nccl-tests.
CONTAINER, NCCL_CONTAINER = "perftest", "nccl-tests"
Role = Literal["server", "client"]
_FOLDER = "/tmp/rdma-verify"  # noqa: S108 -- in the container
#: The kubelet turns `$$(` into `$(`, and `$(NAME)` into the value of a variable.
_SCRIPT = (
    files(__package__)
    .joinpath("pair.sh")
    .read_text(encoding="utf-8")
    .replace("@ROOT@", "")
    .replace("$(", "$$(")
)


def run_selector(run: str = "") -> str:
    """Return the selector of the pods of a run, or of all runs."""
    every = f"{NAME_LABEL}={VERIFY}"
    return f"{every},{RUN_LABEL}={run}" if run else every


def pod_name(plan: RunPlan, place: int, role: Role) -> str:
    """Return the name of a pod; `place` counts the pairs of a run."""
    return f"{plan.name}-{place}-{role}"


def server_pod(plan: RunPlan, place: int, pair: NodePair) -> JsonObject:
    """Return the pod that the client connects to; it is ready when a program of it listens."""
    pod = _pod(plan, place, "server", pair.server)
    (container,) = pod["spec"]["containers"]
    container["env"] = [
        {"name": "POD_IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}}
    ]
    container["args"] = _arguments(plan, "server", "$(POD_IP)", 0)
    container["readinessProbe"] = {
        "exec": {"command": ["test", "-e", f"{_FOLDER}/ready"]},
        "periodSeconds": 1,
    }
    return pod


def client_pod(plan: RunPlan, place: int, pair: NodePair, address: str, count: int) -> JsonObject:
    """Return the pod that measures; `count`: how many HCAs the server has, 0 for the fabric's."""
    pod = _pod(plan, place, "client", pair.client)
    (container,) = pod["spec"]["containers"]
    container["args"] = _arguments(plan, "client", address, count)
    return pod


def _arguments(plan: RunPlan, role: Role, address: str, count: int) -> list[str]:
    numbers = (str(count), str(plan.seconds), str(plan.limit))
    return ["rdma-verify", role, address, *numbers, " ".join(plan.tests), *plan.fabric.hcas]


def _pod(plan: RunPlan, place: int, role: Role, node: str) -> JsonObject:
    annotations = {ENABLE: "true", FABRIC: plan.fabric.name}
    if plan.devices is not None:
        annotations[DEVICES] = str(plan.devices)
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": pod_name(plan, place, role),
            "labels": {
                NAME_LABEL: VERIFY,
                RUN_LABEL: plan.name,
                "app.kubernetes.io/component": role,
            },
            "annotations": annotations,
        },
        "spec": _spec(plan, node),
    }


def _spec(plan: RunPlan, node: str) -> JsonObject:
    requests = {"cpu": "100m", "memory": "256Mi"}
    spec: JsonObject = {
        "restartPolicy": "Never",
        # Ends a pod that nobody deletes.
        "activeDeadlineSeconds": int(2 * plan.patience) + plan.longest,
        "terminationGracePeriodSeconds": 1,
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "affinity": {"nodeAffinity": _on(node)},
        "tolerations": list(plan.tolerations),
        "containers": [
            {
                "name": CONTAINER,
                "image": plan.image,
                "command": ["sh", "-c", _SCRIPT],
                "resources": {"requests": requests},
            }
        ],
    }
    if plan.pull_secrets:
        spec["imagePullSecrets"] = [{"name": one} for one in plan.pull_secrets]
    if plan.fabric.mode == "host-network":
        spec |= {"hostNetwork": True, "dnsPolicy": "ClusterFirstWithHostNet"}
    return spec


def _on(node: str) -> JsonObject:
    name = {"key": "metadata.name", "operator": "In", "values": [node]}
    terms = {"nodeSelectorTerms": [{"matchFields": [name]}]}
    return {"requiredDuringSchedulingIgnoredDuringExecution": terms}


# Delete the pods of a run, or of all runs, and wait until they are gone.

#: Seconds: a pod ends after one, unless its kubelet does not answer.
PATIENCE = 60.0
_CLEANING_PAUSE = 0.5


def remove_pods(
    pods: RunPods,
    selector: str,
    rest: Callable[[float], object],
    now: Callable[[], float],
) -> list[Pod]:
    """Delete all pods with these labels, and return them once none is left.

    `rest` waits for some seconds. Raises ClusterError if they do not go, or the API server does not
    answer.
    """
    deadline = now() + PATIENCE
    removed: dict[tuple[str, str], Pod] = {}
    while left := [Pod.read(pod) for pod in pods.list(selector)]:
        for pod in left:
            removed.setdefault((pod.metadata.namespace, pod.metadata.name), pod)
            if not pod.metadata.is_deleted:
                pods.delete(pod.manifest)
        if now() > deadline:
            raise ClusterError(_stuck(left))
        rest(_CLEANING_PAUSE)
    return list(removed.values())


def _stuck(left: list[Pod]) -> str:
    names = ", ".join(pod.metadata.name for pod in left)
    nodes = ", ".join(dict.fromkeys(map(node_of, left)))
    return (
        f"these pods were deleted, but are still there after {PATIENCE:g} s: {names}; "
        f"check whether the kubelet answers on {nodes}"
    )


# How far a pod has come.

#: Reasons of a waiting container that no waiting repairs.
_FINAL = frozenset({"InvalidImageName", "ErrImageNeverPull"})
_LONGEST = 300
_OURS = (CONTAINER, NCCL_CONTAINER)


class _StatusAnnotation(Record):
    """What a run needs of `rdma.lab/status`."""

    rdma: Text = ""


def rdma_of(pod: Pod) -> str | None:
    """Return whether a pod has RDMA, as the webhook wrote it; None if it was not called."""
    written = pod.metadata.annotations.get(STATUS)
    if not isinstance(written, str):
        return None
    try:
        return _StatusAnnotation.model_validate_json(written).rdma
    except ValueError:
        return ""


def node_of(pod: Pod) -> str:
    """Name the node of a pod, for sentences."""
    return pod.spec.node_name or "no node"


def is_ready(pod: Pod) -> bool:
    """Return whether a pod is ready."""
    return pod.status.is_ready


def is_running(pod: Pod) -> bool:
    """Return whether the container of a pod runs, or has ended."""
    return has_ended(pod) or _container(pod).state.is_running


def has_ended(pod: Pod) -> bool:
    """Return whether the container of a pod has ended, or never starts."""
    terminated = _container(pod).state.terminated is not None
    return terminated or pod.status.phase in ("Succeeded", "Failed")


def has_run(pod: Pod) -> bool:
    """Return whether a pod that has ended did start its container, so that it has a log."""
    terminated = _container(pod).state.terminated
    return terminated is not None and terminated.started_at != ""


def was_killed_for_memory(pod: Pod) -> bool:
    """Return whether the kernel ended the container since memory was short."""
    terminated = _container(pod).state.terminated
    return terminated is not None and terminated.reason == "OOMKilled"


def is_stuck(pod: Pod) -> bool:
    """Return whether a pod will not start, however long one waits."""
    waiting = _container(pod).state.waiting
    return waiting is not None and waiting.reason in _FINAL


def awaits(pod: Pod) -> str:
    """Say what a pod that has not started waits for, in one line; "" if nothing is known."""
    waiting = _container(pod).state.waiting
    if waiting is not None:
        return _line(": ".join(filter(None, (waiting.reason, waiting.message))))
    scheduled = pod.status.condition("PodScheduled")
    return _line(scheduled.message) if scheduled.status == "False" else ""


def _container(pod: Pod) -> ContainerStatus:
    """Return the status of our container; others may have added containers of their own."""
    statuses = pod.status.container_statuses
    return next((status for status in statuses if status.name in _OURS), ContainerStatus())


def _line(words: str) -> str:
    return " ".join(words.split())[:_LONGEST]


# The pods of a run as they were at the last look, and requests that outlast a silent server.

#: Seconds for which an API server may be silent, and between two requests to it.
_SILENCE, _WATCH_PAUSE = 60.0, 1.0
#: Too many requests, and no answer from behind the API server; not 500, by which it passes on that
#: a webhook failed.
_BUSY = (429, 502, 503, 504)
_T = TypeVar("_T")


class PodWatch:
    """Looks at the pods of one run."""

    def __init__(self, site: RunEnvironment, selector: str) -> None:
        self._site = site
        self._selector = selector
        #: By name.
        self.pods: Mapping[str, Pod] = {}

    def look(self) -> None:
        """List the pods."""
        listed = self.patiently(lambda: self._site.pods.list(self._selector))
        self.pods = {pod.metadata.name: pod for pod in map(Pod.read, listed)}

    def patiently(self, request: Callable[[], _T]) -> _T:
        """Make a request, and repeat it while there is no answer.

        Raises RefusedError if the API server rejects it, and ClusterError if the API server stays
        silent, or the run is to end.
        """
        deadline = self._site.now() + _SILENCE
        while True:
            try:
                return request()
            except ClusterError as error:
                silent = not isinstance(error, RefusedError) or error.code in _BUSY
                if not silent or self._site.now() > deadline or self._site.pause(_WATCH_PAUSE):
                    raise
