"""How a controller replaces the pods of an older pod template, and what keeps it from that.

Sources, in Kubernetes 1.36: pkg/controller/statefulset (stateful_set_control.go: a pod that is not
ready holds up a rollout; stateful_set_utils.go: a pod below the partition is created from the old
revision), pkg/controller/daemon/util/daemonset_util.go (IsPodUpdated; the API server counts the
templates of a DaemonSet in an annotation), pkg/controller/cronjob/cronjob_controllerv2.go,
and Kubernetes' docs, "Workload Management". The API server rejects changes of a Job's template.
"""

from __future__ import annotations

import re
import shlex
from typing import NamedTuple

from webhook.diagnose.why.controller_record import ControllerRecord
from webhook.diagnose.why.evidence import PodEvidence
from webhook.kube.objects import KubernetesObject, PodRecord
from webhook.model.names import capitalized
from webhook.model.pod import at

#: The kinds that replace pods, or start new ones, when their template changes.
REPLACING_KINDS = frozenset({"CronJob", "DaemonSet", "Deployment", "StatefulSet"})
_REVISION, _GENERATION = "controller-revision-hash", "pod-template-generation"
#: The annotation of a DaemonSet with the number of its present template.
_TEMPLATE_GENERATION = "deprecated.daemonset.template.generation"
_ORDINAL = re.compile(r"-([0-9]{1,9})\Z")
_TO_ZERO = '{"spec":{"updateStrategy":{"rollingUpdate":{"partition":0}}}}'


class ReplacementObstacle(NamedTuple):
    """What keeps a controller from replacing a pod."""

    #: A clause.
    cause: str
    #: What to do about it: an imperative clause.
    step: str
    #: The effect, as a sentence.
    effect: str

    @property
    def remedy(self) -> str:
        """The step and its effect as sentences."""
        return f"{capitalized(self.step)}. {self.effect}".rstrip()


def has_old_template(evidence: PodEvidence) -> bool:
    """Return whether the pod's controller is known to have another template by now."""
    if not evidence.owners:
        return False
    controller = ControllerRecord.read(evidence.owners[0].manifest)
    labels = evidence.pod.metadata.labels
    if controller.kind == "StatefulSet":
        return _differ(labels.get(_REVISION), controller.status.update_revision)
    if controller.kind == "DaemonSet" and not _is_rolled_out(controller):
        generation = controller.metadata.annotations.get(_TEMPLATE_GENERATION)
        return _differ(labels.get(_GENERATION), generation)
    return False


def _differ(of_pod: object, of_controller: object) -> bool:
    return bool(of_pod and of_controller) and of_pod != of_controller


def _is_rolled_out(daemon_set: ControllerRecord) -> bool:
    """Return whether all pods are up to date: a template may be what an older one was."""
    status = daemon_set.status
    if status.observed_generation != at(daemon_set.manifest, ("metadata", "generation")):
        return False
    return 0 < status.current_number_scheduled <= status.updated_number_scheduled


def replacement_obstacle(
    controller: KubernetesObject, evidence: PodEvidence
) -> ReplacementObstacle | None:
    """Return what keeps a controller from replacing the pod; None if nothing is known to."""
    record = ControllerRecord.read(controller.manifest)
    match record.kind:
        case "StatefulSet" | "DaemonSet" if record.spec.update_strategy.type == "OnDelete":
            effect = f"The {record.kind} then creates it from its present template."
            cause = f"the updateStrategy of {record.title} is OnDelete"
            return ReplacementObstacle(cause, _deletion(evidence), effect)
        case "StatefulSet" if _is_below_partition(record, evidence.pod):
            return _partition(record, evidence)
        case "Deployment" if record.spec.paused:
            subject = f"deployment/{record.metadata.name}"
            arguments = shlex.join([subject, "-n", evidence.namespace_name])
            step = f"resume it: `kubectl rollout resume {arguments}`"
            return ReplacementObstacle(
                f"{record.title} is paused", step, "The Deployment then replaces the pod."
            )
        case "CronJob" if record.spec.suspend:
            command = start_job(record, f"{record.metadata.name}-again", evidence.namespace_name)
            effect = "It has the present template."
            return ReplacementObstacle(
                f"{record.title} is suspended", f"start a Job: `{command}`", effect
            )
        case "CronJob" if record.spec.concurrency_policy == "Forbid":
            return _running_job(record, evidence)
        case _:
            return None


def start_job(cron_job: KubernetesObject, name: str, namespace: str) -> str:
    """Return the command that starts a Job of a CronJob."""
    source = f"--from=cronjob/{cron_job.metadata.name}"
    return f"kubectl create job {shlex.join([source, name, '-n', namespace])}"


def _is_below_partition(stateful_set: ControllerRecord, pod: PodRecord) -> bool:
    spec, ordinal = stateful_set.spec, _ORDINAL.search(pod.metadata.name)
    partition = spec.update_strategy.rolling_update.partition
    return ordinal is not None and int(ordinal[1]) < spec.ordinals.start + partition


def _partition(stateful_set: ControllerRecord, evidence: PodEvidence) -> ReplacementObstacle:
    """Return the obstacle of a partition: even a deleted pod is created from the old template."""
    partition = stateful_set.spec.update_strategy.rolling_update.partition
    cause = f"updateStrategy.rollingUpdate.partition of {stateful_set.title} is {partition}"
    above = stateful_set.metadata.controller
    if above is not None:
        step = f"wait until {above.title}, which sets the partition, has rolled out its template"
        return ReplacementObstacle(cause, step, "")
    name = stateful_set.metadata.name
    arguments = shlex.join([name, "-n", evidence.namespace_name, "--patch", _TO_ZERO])
    step = f"set the partition to 0: `kubectl patch statefulset {arguments}`"
    if not evidence.pod.status.is_ready:
        step = f"{step}. Then {_deletion(evidence)}"
    return ReplacementObstacle(
        cause, step, "The StatefulSet then creates the pod from its present template."
    )


def _running_job(cron_job: ControllerRecord, evidence: PodEvidence) -> ReplacementObstacle | None:
    """Return the obstacle of a Job that runs, if the CronJob starts no other meanwhile."""
    for owner in evidence.owners:
        if owner.kind == "Job" and not ControllerRecord.read(owner.manifest).status.has_ended:
            arguments = shlex.join([owner.metadata.name, "-n", evidence.namespace_name])
            return ReplacementObstacle(
                f"the concurrencyPolicy of {cron_job.title} is Forbid, and {owner.title} runs",
                f"delete that Job: `kubectl delete job {arguments}`",
                "The CronJob then starts the next one, with its present template, when it is due.",
            )
    return None


def replacement_remedy(controller: KubernetesObject, evidence: PodEvidence) -> str:
    """Return how the present template of a controller reaches the pod."""
    if obstacle := replacement_obstacle(controller, evidence):
        return obstacle.remedy
    if controller.kind == "CronJob":
        return f"Wait for the next Job of {controller.title}."
    subject = f"{controller.kind.lower()}/{controller.metadata.name}"
    arguments = shlex.join([subject, "-n", evidence.namespace_name])
    command = f"kubectl rollout status {arguments}"
    wait = f"Wait until the {controller.kind} replaces the pod: `{command}`."
    return f"{wait}{_deletion_if_kept(controller.kind, evidence)}"


def effect_of_change(kind: str, name: str, evidence: PodEvidence) -> str:
    """Return how a change of a controller's template reaches the pod, after a clause on it."""
    match kind:
        case "Deployment" | "DaemonSet" | "StatefulSet":
            replaced = f"; the {kind} then replaces the pod."
            return f"{replaced}{_deletion_if_kept(kind, evidence)}"
        case "ReplicaSet":
            return ", and delete the pod: the ReplicaSet creates it again."
        case "CronJob":
            return "; the next Job of the CronJob then has it."
        case "Job":
            template = ". A Job's template cannot be changed"
            return f"{template}, so delete Job {name} and create it again."
        case _:
            return f", and create {kind} {name} again."


def _deletion_if_kept(kind: str, evidence: PodEvidence) -> str:
    """Return what to do if a controller does not replace the pod; "" if a deletion is no help."""
    if kind == "Deployment":  # whose ReplicaSet would only create it again
        return ""
    return f" If it does not, {_deletion(evidence)}."


def _deletion(evidence: PodEvidence) -> str:
    arguments = shlex.join([evidence.name, "-n", evidence.namespace_name])
    return f"delete the pod: `kubectl delete pod {arguments}`"
