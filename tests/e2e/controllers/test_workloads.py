"""Kubernetes' own controllers: their pods are patched, run, and are accepted as theirs."""

from __future__ import annotations

import json

import pytest

from tests.e2e.controllers.lab import Document, WorkloadNamespace, check_target
from tests.e2e.documents import ENABLE, template, workload

#: The sign of each controller that its pods are complete.
DONE = {
    "Deployment": ("rollout", "status"),
    "StatefulSet": ("rollout", "status"),
    "DaemonSet": ("rollout", "status"),
    "ReplicaSet": ("wait", "--for=jsonpath={.status.readyReplicas}=1"),
    "Job": ("wait", "--for=condition=Complete"),
    "CronJob": ("wait", "--for=jsonpath={.status.lastSuccessfulTime}"),
}


def _template(image: str, kind: str) -> Document:
    """Return a template whose container requests a GPU; it completes if it is for a Job."""
    ends = kind in ("Job", "CronJob")
    document = template({ENABLE: "true"}, {"kind": kind})
    container = {
        "name": "main",
        "image": image,
        "imagePullPolicy": "Never",
        "command": ["rank"] if ends else ["sh", "-c", "rank && exec sleep infinity"],
        "resources": {"limits": {"nvidia.com/v100": "1", "memory": "256Mi"}},
    }
    document["spec"] |= {"containers": [container], "terminationGracePeriodSeconds": 0}
    return document


@pytest.fixture(scope="module")
def started(lab: WorkloadNamespace) -> WorkloadNamespace:
    """Create one workload of each kind, all at once."""
    for kind in DONE:
        document = workload(kind, lab.namespace, _template(lab.image, kind), name=kind.lower())
        if "selector" in document["spec"]:
            document["spec"]["selector"] = {"matchLabels": {"kind": kind}}
        lab.kubectl("create", "--filename=-", input=json.dumps(document))
    # It runs at once, as if it had missed a year of runs.
    missed = json.dumps({"status": {"lastScheduleTime": "2020-06-01T00:00:00Z"}})
    lab.kubectl("patch", "cronjob/cronjob", "--subresource=status", "--type=merge", "-p", missed)
    return lab


@pytest.mark.parametrize("kind", DONE)
def test_pods_of_a_controller_are_patched_and_run(started: WorkloadNamespace, kind: str) -> None:
    """The pods have all mutations, their processes see them, and the controller is satisfied."""
    verb, *how = DONE[kind]
    started.wait(verb, *how, f"{kind.lower()}/{kind.lower()}")

    (pod,) = started.pods(f"kind={kind}")
    check_target(started, pod)
