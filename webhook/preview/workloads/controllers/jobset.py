"""JobSet: JobSet (jobset.x-k8s.io/v1alpha2), which makes Indexed Jobs.

Source: kubernetes-sigs/jobset v0.10.1, pkg/controllers/jobset_controller.go (constructJob,
labelAndAnnotateObject, addNamespacedJobNodeSelector), pkg/webhooks/jobset_webhook.go (the default
of completionMode).

Left out, since no decision reads them: subdomains, hashes and UIDs in labels, the affinity between
pods that exclusive placement adds, the toleration beside the nodeSelector.
"""

from __future__ import annotations

from typing import Any

from webhook.decide.draft import Draft
from webhook.model.path import Path
from webhook.model.pod import PodManifest, at
from webhook.preview.workloads.controllers.kubernetes import indexed
from webhook.preview.workloads.controllers.workload import (
    Controller,
    Live,
    Workload,
    add_annotations,
    add_labels,
    word,
)

_JOBSET_PREFIX = "jobset.sigs.k8s.io"
_EXCLUSIVE = ("metadata", "annotations", "alpha.jobset.sigs.k8s.io/exclusive-topology")
_BY_SELECTOR = ("metadata", "annotations", "alpha.jobset.sigs.k8s.io/node-selector")
_SELECTED = "alpha.jobset.sigs.k8s.io/namespaced-job"
_JOBS = ("spec", "replicatedJobs")
_JOB_POD_TEMPLATE: Path = ("template", "spec", "template")
_INDEXED = "Indexed"


def _live_jobset(workload: Workload) -> tuple[Live, ...]:
    if workload.where[:2] != _JOBS or workload.where[3:] != _JOB_POD_TEMPLATE:
        return (Live(workload.pod),)
    job = at(workload.value, workload.where[:3])
    mode = at(job, ("template", "spec", "completionMode")) or _INDEXED
    pod = _placed(workload, job)
    return (Live(indexed(pod) if mode == _INDEXED else pod),)


def _placed(workload: Workload, job: Any) -> PodManifest:
    draft = Draft(workload.pod)
    name = word(job, ("name",))
    marks = {
        f"{_JOBSET_PREFIX}/jobset-name": workload.name,
        f"{_JOBSET_PREFIX}/replicatedjob-name": name,
        f"{_JOBSET_PREFIX}/replicatedjob-replicas": word(job, ("replicas",), "1"),
        f"{_JOBSET_PREFIX}/job-index": "0",
        f"{_JOBSET_PREFIX}/restart-attempt": "0",
    }
    add_labels(draft, marks)
    add_annotations(draft, marks)
    for one in (workload.value, at(job, ("template",))):
        if at(one, _EXCLUSIVE) is not None and at(one, _BY_SELECTOR) is not None:
            selected = f"{workload.namespace}_{workload.name}-{name}-0"
            draft.set(("spec", "nodeSelector", _SELECTED), selected)
    return draft.pod


JOBSET = Controller(
    name="JobSet",
    kinds=frozenset({"jobset.x-k8s.io/v1alpha2 JobSet"}),
    adds="labels and annotations with the names and indexes of its Jobs, `JOB_COMPLETION_INDEX`, "
    "and the nodeSelector of exclusive placement by nodeSelector",
    live=_live_jobset,
)
