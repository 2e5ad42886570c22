"""The pods of a pair: each on its node, with the annotations by which the webhook equips it.

A node is chosen by affinity, as a DaemonSet does it, so that the scheduler and the device plugin
still decide whether the pod fits there.
"""

from __future__ import annotations

from importlib.resources import files
from typing import Any, Literal

from webhook.diagnose.verify.run_report import NodePair
from webhook.diagnose.verify.runs.plan import RunPlan
from webhook.model.annotations import DEVICES, ENABLE, FABRIC

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


def server_pod(plan: RunPlan, place: int, pair: NodePair) -> dict[str, Any]:
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


def client_pod(
    plan: RunPlan, place: int, pair: NodePair, address: str, count: int
) -> dict[str, Any]:
    """Return the pod that measures; `count`: how many HCAs the server has, 0 for the fabric's."""
    pod = _pod(plan, place, "client", pair.client)
    (container,) = pod["spec"]["containers"]
    container["args"] = _arguments(plan, "client", address, count)
    return pod


def _arguments(plan: RunPlan, role: Role, address: str, count: int) -> list[str]:
    numbers = (str(count), str(plan.seconds), str(plan.limit))
    return ["rdma-verify", role, address, *numbers, " ".join(plan.tests), *plan.fabric.hcas]


def _pod(plan: RunPlan, place: int, role: Role, node: str) -> dict[str, Any]:
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


def _spec(plan: RunPlan, node: str) -> dict[str, Any]:
    requests = {"cpu": "100m", "memory": "256Mi"}
    spec: dict[str, Any] = {
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


def _on(node: str) -> dict[str, Any]:
    name = {"key": "metadata.name", "operator": "In", "values": [node]}
    terms = {"nodeSelectorTerms": [{"matchFields": [name]}]}
    return {"requiredDuringSchedulingIgnoredDuringExecution": terms}
