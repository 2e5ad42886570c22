"""Kubernetes' own controllers, which create pods from their templates nearly unchanged.

Source: kubernetes v1.36, pkg/controller/job/indexed_job_utils.go (addCompletionIndexEnvVariable,
addCompletionIndexAnnotation, addCompletionIndexLabel): an Indexed Job's containers learn their
index.

Left out, since no decision reads them: the labels of Job, StatefulSet, DaemonSet and ReplicaSet,
names, ownerReferences, tolerations, the claims of a StatefulSet. A DaemonSet's pod names its node.
"""

from __future__ import annotations

from webhook.decide.draft import Draft
from webhook.kube.records import LenientObject
from webhook.model.pod import Path, PodManifest
from webhook.preview.workloads.controllers.workload import (
    CONTAINERS,
    INIT_CONTAINERS,
    Controller,
    ControllerPod,
    Workload,
    add_annotations,
    add_env,
    add_labels,
    containers_in,
    pod_field_variable,
    variables,
)
from webhook.preview.workloads.objects import ObjectMetadata, TextOrDefault

_INDEX = "batch.kubernetes.io/job-completion-index"
_VARIABLE = "JOB_COMPLETION_INDEX"
_POD_TEMPLATE: Path = ("spec", "template")
_JOB_TEMPLATE: Path = ("spec", "jobTemplate")
_INDEXED = "Indexed"


class _JobSpec(LenientObject):
    completion_mode: object = None


def index_pod(pod: PodManifest) -> PodManifest:
    """Return the pod that an Indexed Job creates; raise ShapeError for a malformed template."""
    draft = Draft(pod)
    add_annotations(draft, {_INDEX: "0"})
    add_labels(draft, {_INDEX: "0"})
    index_variable = pod_field_variable(_VARIABLE, f"metadata.labels['{_INDEX}']")
    for field in (INIT_CONTAINERS, CONTAINERS):
        for container in containers_in(pod, field):
            if _VARIABLE not in container.env_names:
                add_env(draft, container.path, [index_variable])
    return draft.pod


def _job_pods(workload: Workload) -> tuple[ControllerPod, ...]:
    if workload.template_path not in (_POD_TEMPLATE, (*_JOB_TEMPLATE, *_POD_TEMPLATE)):
        return (ControllerPod(workload.pod),)
    is_indexed = (
        _JobSpec.model_validate(workload.values_above_template[-1]).completion_mode == _INDEXED
    )
    return (ControllerPod(index_pod(workload.pod) if is_indexed else workload.pod),)


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
    make_pods=_job_pods,
)


# JobSet (jobset.x-k8s.io/v1alpha2), which makes Indexed Jobs.
#
# Source: kubernetes-sigs/jobset v0.10.1, pkg/controllers/jobset_controller.go (constructJob,
# labelAndAnnotateObject, addNamespacedJobNodeSelector), pkg/webhooks/jobset_webhook.go (the
# default of completionMode).
#
# Left out, since no decision reads them: subdomains, hashes and UIDs in labels, the affinity
# between pods that exclusive placement adds, the toleration next to the nodeSelector.

_JOBSET_PREFIX = "jobset.sigs.k8s.io"
_EXCLUSIVE = "alpha.jobset.sigs.k8s.io/exclusive-topology"
_BY_SELECTOR = "alpha.jobset.sigs.k8s.io/node-selector"
_SELECTED = "alpha.jobset.sigs.k8s.io/namespaced-job"
_JOBS = ("spec", "replicatedJobs")
_JOB_POD_TEMPLATE: Path = ("template", "spec", "template")


class _ReplicatedJob(LenientObject):
    name: TextOrDefault = ""
    replicas: TextOrDefault = "1"


def _jobset_pods(workload: Workload) -> tuple[ControllerPod, ...]:
    if workload.template_path[:2] != _JOBS or workload.template_path[3:] != _JOB_POD_TEMPLATE:
        return (ControllerPod(workload.pod),)
    *_, job, template, spec = workload.values_above_template
    pod = _place_pod(workload, _ReplicatedJob.model_validate(job), ObjectMetadata.of(template))
    mode = _JobSpec.model_validate(spec).completion_mode or _INDEXED
    return (ControllerPod(index_pod(pod) if mode == _INDEXED else pod),)


def _place_pod(workload: Workload, job: _ReplicatedJob, template: ObjectMetadata) -> PodManifest:
    draft = Draft(workload.pod)
    identity = {
        f"{_JOBSET_PREFIX}/jobset-name": workload.name,
        f"{_JOBSET_PREFIX}/replicatedjob-name": job.name,
        f"{_JOBSET_PREFIX}/replicatedjob-replicas": job.replicas,
        f"{_JOBSET_PREFIX}/job-index": "0",
        f"{_JOBSET_PREFIX}/restart-attempt": "0",
    }
    add_labels(draft, identity)
    add_annotations(draft, identity)
    for metadata in (workload.annotations, template.annotations):
        if metadata.get(_EXCLUSIVE) is not None and metadata.get(_BY_SELECTOR) is not None:
            selected = f"{workload.namespace}_{workload.name}-{job.name}-0"
            draft.set(("spec", "nodeSelector", _SELECTED), selected)
    return draft.pod


JOBSET = Controller(
    name="JobSet",
    kinds=frozenset({"jobset.x-k8s.io/v1alpha2 JobSet"}),
    adds="labels and annotations with the names and indexes of its Jobs, `JOB_COMPLETION_INDEX`, "
    "and the nodeSelector for exclusive placement with the nodeSelector strategy",
    make_pods=_jobset_pods,
)


# LeaderWorkerSet (leaderworkerset.x-k8s.io/v1), by its controller and webhook.
#
# Source: kubernetes-sigs/lws v0.7.0, pkg/controllers/leaderworkerset_controller.go and
# pod_controller.go (labels and annotations of the StatefulSets' templates), pkg/webhooks/
# pod_webhook.go, pkg/utils/pod/pod_utils.go (AddLWSVariables: the group's variables come first, and
# replace the user's of the same name).
#
# Left out, since no decision reads them: hashes in labels, subgroups, host names, the affinity
# between pods that exclusive placement adds, the variables for TPUs.

_LEADERWORKERSET_PREFIX = "leaderworkerset.sigs.k8s.io"
_GROUP = ("spec", "leaderWorkerTemplate")
_LEADER: Path = (*_GROUP, "leaderTemplate")
_WORKER: Path = (*_GROUP, "workerTemplate")


class _LeaderWorkerTemplate(LenientObject):
    size: TextOrDefault = "1"


def _group_pods(workload: Workload) -> tuple[ControllerPod, ...]:
    if workload.template_path not in (_LEADER, _WORKER):
        return (ControllerPod(workload.pod),)
    # Without its own template, the leader is made from the workers' and differs in its index.
    index = "0" if workload.template_path == _LEADER else "1"
    size = _LeaderWorkerTemplate.model_validate(workload.values_above_template[-1]).size
    draft = Draft(workload.pod)
    add_labels(
        draft,
        {
            f"{_LEADERWORKERSET_PREFIX}/name": workload.name,
            f"{_LEADERWORKERSET_PREFIX}/group-index": "0",
            f"{_LEADERWORKERSET_PREFIX}/worker-index": index,
        },
    )
    add_annotations(draft, {f"{_LEADERWORKERSET_PREFIX}/size": size})
    leader = f"{workload.name}-0.{workload.name}.{workload.namespace}"
    group_env = variables(LWS_LEADER_ADDRESS=leader, LWS_GROUP_SIZE=size, LWS_WORKER_INDEX=index)
    _put_first(draft, group_env)
    return (ControllerPod(draft.pod),)


def _put_first(draft: Draft, group_env: list[dict[str, object]]) -> None:
    names = [variable["name"] for variable in group_env]
    for field in (INIT_CONTAINERS, CONTAINERS):
        for container in containers_in(draft.pod, field):
            user_env = [variable for variable in container.env if variable.get("name") not in names]
            draft.set((*container.path, "env"), [*group_env, *user_env])


LEADERWORKERSET = Controller(
    name="LeaderWorkerSet",
    kinds=frozenset({"leaderworkerset.x-k8s.io/v1 LeaderWorkerSet"}),
    adds="labels and an annotation with name, index and size of the group, and `LWS_*` variables",
    make_pods=_group_pods,
)
