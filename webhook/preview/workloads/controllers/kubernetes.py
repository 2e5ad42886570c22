"""Kubernetes' own controllers: they create pods from their templates nearly unchanged.

Source: kubernetes v1.36, pkg/controller/job/indexed_job_utils.go (addCompletionIndexEnvVariable,
addCompletionIndexAnnotation, addCompletionIndexLabel): an Indexed Job's containers learn their
index.

Left out, since no decision reads them: the labels of Job, StatefulSet, DaemonSet and ReplicaSet,
names, ownerReferences, tolerations, the claims of a StatefulSet. A DaemonSet's pod names its node.
"""

from __future__ import annotations

from webhook.decide.draft import Draft
from webhook.model.path import Path
from webhook.model.pod import PodManifest, at, items
from webhook.preview.workloads.controllers.workload import (
    CONTAINERS,
    INIT_CONTAINERS,
    Controller,
    Live,
    Workload,
    add_annotations,
    add_env,
    add_labels,
    of_pod,
)

_INDEX = "batch.kubernetes.io/job-completion-index"
_VARIABLE = "JOB_COMPLETION_INDEX"
_POD_TEMPLATE: Path = ("spec", "template")
_JOB_TEMPLATE: Path = ("spec", "jobTemplate")


def indexed(pod: PodManifest) -> PodManifest:
    """Return the pod as an Indexed Job creates it; raise ShapeError for a misshapen one."""
    draft = Draft(pod)
    add_annotations(draft, {_INDEX: "0"})
    add_labels(draft, {_INDEX: "0"})
    item = of_pod(_VARIABLE, f"metadata.labels['{_INDEX}']")
    for field in (INIT_CONTAINERS, CONTAINERS):
        for index, one in enumerate(items(pod, field)):
            if all(known.get("name") != _VARIABLE for known in items(one, ("env",))):
                add_env(draft, (*field, index), [item])
    return draft.pod


def _live_pods(workload: Workload) -> tuple[Live, ...]:
    job = {_POD_TEMPLATE: (), (*_JOB_TEMPLATE, *_POD_TEMPLATE): _JOB_TEMPLATE}.get(workload.where)
    if job is not None and at(workload.value, (*job, "spec", "completionMode")) == "Indexed":
        return (Live(indexed(workload.pod)),)
    return (Live(workload.pod),)


KUBERNETES = Controller(
    name="",
    kinds=frozenset(
        {
            "v1 Pod",
            "v1 PodTemplate",
            "v1 ReplicationController",
            "apps/v1 DaemonSet",
            "apps/v1 Deployment",
            "apps/v1 ReplicaSet",
            "apps/v1 StatefulSet",
            "batch/v1 CronJob",
            "batch/v1 Job",
        }
    ),
    adds="`JOB_COMPLETION_INDEX` in the containers of an Indexed Job",
    live=_live_pods,
)
