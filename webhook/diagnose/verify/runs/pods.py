"""The pods of a pair: each on its node, with the annotations that opt in to the webhook.

A node is chosen by affinity, as in a DaemonSet, so that the scheduler and the device plugin still
decide whether the pod fits there.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib.resources import files
from typing import Literal, TypeVar

from webhook.diagnose.verify.results import NodePair
from webhook.diagnose.verify.runs.plan import RunEnvironment, RunPlan, RunPods
from webhook.errors import ClusterError
from webhook.kube.api import StatusError
from webhook.kube.container_states import ContainerStatus
from webhook.kube.objects import PodRecord
from webhook.kube.records import LenientObject, Text
from webhook.model.annotations import (
    DEVICES_ANNOTATION,
    ENABLE_ANNOTATION,
    FABRIC_ANNOTATION,
    STATUS_ANNOTATION,
)
from webhook.model.json import JsonObject

#: The label of the pods of all runs, and the label whose value is the name of a run.
NAME_LABEL, RUN_LABEL = "app.kubernetes.io/name", "app.kubernetes.io/instance"
VERIFY = "rdma-webhook-verify"
#: The container of a pod that runs perftest, and of one that runs nccl-tests.
CONTAINER, NCCL_CONTAINER = "perftest", "nccl-tests"
Role = Literal["server", "client"]
_FOLDER = "/tmp/rdma-verify"  # noqa: S108 -- in the container
#: The kubelet turns `$$(` into `$(`, and `$(NAME)` into the value of a variable. In place of
#: @ROOT@, before paths such as /proc, tests put a folder.
_SCRIPT = (
    files(__package__)
    .joinpath("pair.sh")
    .read_text(encoding="utf-8")
    .replace("@ROOT@", "")
    .replace("$(", "$$(")
)


def run_selector(run: str = "") -> str:
    """Return the label selector for the pods of a run, or of all runs."""
    all_runs = f"{NAME_LABEL}={VERIFY}"
    return f"{all_runs},{RUN_LABEL}={run}" if run else all_runs


def pod_name(plan: RunPlan, number: int, role: Role) -> str:
    """Return the name of a pod; `number` counts the pairs of a run."""
    return f"{plan.name}-{number}-{role}"


def server_pod(plan: RunPlan, number: int, pair: NodePair) -> JsonObject:
    """Return the pod that the client connects to; it is ready once a program in it listens."""
    pod = _pod(plan, number, "server", pair.server)
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


def client_pod(plan: RunPlan, number: int, pair: NodePair, address: str, count: int) -> JsonObject:
    """Return the pod that measures `count` HCAs, or the fabric's HCAs if `count` is 0."""
    pod = _pod(plan, number, "client", pair.client)
    (container,) = pod["spec"]["containers"]
    container["args"] = _arguments(plan, "client", address, count)
    return pod


def _arguments(plan: RunPlan, role: Role, address: str, count: int) -> list[str]:
    numbers = (str(count), str(plan.seconds), str(plan.program_timeout))
    return ["rdma-verify", role, address, *numbers, " ".join(plan.tests), *plan.fabric.hcas]


def _pod(plan: RunPlan, number: int, role: Role, node: str) -> JsonObject:
    annotations = {ENABLE_ANNOTATION: "true", FABRIC_ANNOTATION: plan.fabric.name}
    if plan.devices is not None:
        annotations[DEVICES_ANNOTATION] = str(plan.devices)
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": pod_name(plan, number, role),
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
        "activeDeadlineSeconds": int(2 * plan.start_timeout) + plan.pair_timeout,
        "terminationGracePeriodSeconds": 1,
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "affinity": {"nodeAffinity": _node_affinity(node)},
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
        spec["imagePullSecrets"] = [{"name": secret} for secret in plan.pull_secrets]
    if plan.fabric.mode == "host-network":
        spec |= {"hostNetwork": True, "dnsPolicy": "ClusterFirstWithHostNet"}
    return spec


def _node_affinity(node: str) -> JsonObject:
    name = {"key": "metadata.name", "operator": "In", "values": [node]}
    terms = {"nodeSelectorTerms": [{"matchFields": [name]}]}
    return {"requiredDuringSchedulingIgnoredDuringExecution": terms}


# Delete the pods of a run, or of all runs, and wait until they are gone.

#: Seconds; a pod ends after 1 s, unless its kubelet does not answer.
DELETE_TIMEOUT = 60.0
_CLEANING_PAUSE = 0.5


def remove_pods(
    pods: RunPods,
    selector: str,
    sleep: Callable[[float], object],
    now: Callable[[], float],
) -> list[PodRecord]:
    """Delete all pods with these labels, and return them once all are gone.

    `sleep` waits for some seconds. Raises ClusterError if pods remain, or the API server does not
    answer.
    """
    deadline = now() + DELETE_TIMEOUT
    removed: dict[tuple[str, str], PodRecord] = {}
    while remaining := [PodRecord.read(pod) for pod in pods.list(selector)]:
        for pod in remaining:
            removed.setdefault((pod.metadata.namespace, pod.metadata.name), pod)
            if not pod.metadata.is_deleted:
                pods.delete(pod.manifest)
        if now() > deadline:
            raise ClusterError(_remaining_message(remaining))
        sleep(_CLEANING_PAUSE)
    return list(removed.values())


def _remaining_message(remaining: list[PodRecord]) -> str:
    names = ", ".join(pod.metadata.name for pod in remaining)
    nodes = ", ".join(dict.fromkeys(map(node_of, remaining)))
    return (
        f"not deleted within {DELETE_TIMEOUT:g} s: {names}; check whether the kubelet answers on "
        f"{nodes}"
    )


# The progress of a pod.

#: Reasons of a waiting container that are permanent.
_PERMANENT_REASONS = frozenset({"InvalidImageName", "ErrImageNeverPull"})
_MAX_MESSAGE = 300
_CONTAINERS = (CONTAINER, NCCL_CONTAINER)


class _StatusAnnotation(LenientObject):
    """The fields of `rdma.lab/status` that a run reads."""

    rdma: Text = ""


def rdma_of(pod: PodRecord) -> str | None:
    """Return the verdict in the status of a pod; None if the webhook was not called for it."""
    written = pod.metadata.annotations.get(STATUS_ANNOTATION)
    if not isinstance(written, str):
        return None
    try:
        return _StatusAnnotation.model_validate_json(written).rdma
    except ValueError:
        return ""


def node_of(pod: PodRecord) -> str:
    """Return the name of a pod's node, for sentences."""
    return pod.spec.node_name or "no node"


def is_ready(pod: PodRecord) -> bool:
    """Return whether a pod is ready."""
    return pod.status.is_ready


def has_started(pod: PodRecord) -> bool:
    """Return whether the container of a pod runs, or has ended."""
    return has_ended(pod) or _container(pod).state.is_running


def has_ended(pod: PodRecord) -> bool:
    """Return whether the container of a pod has ended, or never starts."""
    terminated = _container(pod).state.terminated is not None
    return terminated or pod.status.has_ended


def has_run(pod: PodRecord) -> bool:
    """Return whether a pod that has ended started its container, so that it has a log."""
    terminated = _container(pod).state.terminated
    return terminated is not None and terminated.started_at != ""


def was_killed_for_memory(pod: PodRecord) -> bool:
    """Return whether the kernel killed the container because memory was short."""
    terminated = _container(pod).state.terminated
    return terminated is not None and terminated.reason == "OOMKilled"


def can_never_start(pod: PodRecord) -> bool:
    """Return whether a pod waits for something that never happens."""
    waiting = _container(pod).state.waiting
    return waiting is not None and waiting.reason in _PERMANENT_REASONS


def waiting_reason(pod: PodRecord) -> str:
    """Return what a pod that has not started waits for, in one line; "" if unknown."""
    waiting = _container(pod).state.waiting
    if waiting is not None:
        return _one_line(": ".join(filter(None, (waiting.reason, waiting.message))))
    scheduled = pod.status.condition("PodScheduled")
    return _one_line(scheduled.message) if scheduled.status == "False" else ""


def _container(pod: PodRecord) -> ContainerStatus:
    """Return the status of our container; other webhooks may have added containers."""
    statuses = pod.status.container_statuses
    return next((status for status in statuses if status.name in _CONTAINERS), ContainerStatus())


def _one_line(text: str) -> str:
    return " ".join(text.split())[:_MAX_MESSAGE]


# The pods of a run as of the last poll, and requests that are repeated while the server is silent.

#: Seconds for which an API server may be silent, and between two requests to it.
_SILENCE, _WATCH_PAUSE = 60.0, 1.0
#: Too many requests, and no answer from servers after the API server. Not 500, which reports that a
#: webhook failed.
_BUSY = (429, 502, 503, 504)
_T = TypeVar("_T")


class PodPoll:
    """The pods of a run, as of the last poll."""

    def __init__(self, environment: RunEnvironment, selector: str) -> None:
        self._environment = environment
        self._selector = selector
        #: By name.
        self.pods: Mapping[str, PodRecord] = {}

    def poll(self) -> None:
        """List the pods."""
        listed = self.with_retries(lambda: self._environment.pods.list(self._selector))
        self.pods = {pod.metadata.name: pod for pod in map(PodRecord.read, listed)}

    def with_retries(self, request: Callable[[], _T]) -> _T:
        """Make a request, and repeat it while the API server does not answer.

        Raises StatusError if the API server rejects it, and ClusterError if the API server stays
        silent, or the run must end.
        """
        deadline = self._environment.now() + _SILENCE
        while True:
            try:
                return request()
            except ClusterError as error:
                silent = not isinstance(error, StatusError) or error.code in _BUSY
                if (
                    not silent
                    or self._environment.now() > deadline
                    or self._environment.wait_for_end(_WATCH_PAUSE)
                ):
                    raise
