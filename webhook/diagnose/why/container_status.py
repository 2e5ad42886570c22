"""The containers of a pod that cannot start, have ended or have restarted."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from typing import NamedTuple

from webhook.decide.mutations.memory_limit import REQUIRED
from webhook.diagnose.why.container_kills import (
    EXIT_BY_SIGKILL,
    POST_START_REMEDY,
    cause_of_kill,
    is_by_deletion,
)
from webhook.diagnose.why.evidence import PodEvidence
from webhook.diagnose.why.messages import cut
from webhook.kube.container_states import ContainerStatus, Terminated, Waiting
from webhook.kube.objects import PodRecord
from webhook.model.annotations import MEMORY_LIMIT_ANNOTATION
from webhook.model.finding import Code, Finding, Level

_CHECK_IMAGE = (
    "Check the image's name and tag, whether the node can reach the registry, and whether "
    "imagePullSecrets in the pod's spec names a valid pull secret of the namespace."
)
_CORRECT = "Correct the problem that the kubelet's message reports."
#: The reasons for which the kubelet cannot start a container, with the cause as a clause.
_START_FAILURES = (
    (
        Code("ErrImagePull", "The image of a container cannot be pulled.", _CHECK_IMAGE),
        "its image cannot be pulled",
    ),
    (
        Code(
            "ImagePullBackOff",
            "The image of a container cannot be pulled; the kubelet waits before the next attempt.",
            _CHECK_IMAGE,
        ),
        "its image cannot be pulled",
    ),
    (
        Code(
            "InvalidImageName",
            "The image of a container has an invalid name.",
            "Correct the image reference in the pod spec.",
        ),
        "its image has an invalid name",
    ),
    (
        Code(
            "ErrImageNeverPull",
            "The image of a container is not on the node, and the container's imagePullPolicy is "
            "Never.",
            "Load the image onto the node. If the node should pull the image instead, set "
            "imagePullPolicy to IfNotPresent.",
        ),
        "its image is not on the node, and its imagePullPolicy is Never",
    ),
    (
        Code(
            "CreateContainerConfigError",
            "A container refers to a ConfigMap, a Secret or a key that does not exist, or "
            "runAsNonRoot does not permit the container's user.",
            "Create the object that the message names, or add the key that it lacks. If the "
            "message is about runAsNonRoot, remove that field from the securityContext of the pod "
            "or the container.",
        ),
        "a ConfigMap, a Secret or a key that it refers to does not exist",
    ),
    (
        Code("CreateContainerError", "The runtime could not create a container.", _CORRECT),
        "the runtime could not create it",
    ),
    (
        Code(
            "PostStartHookError",
            "The postStart hook of a container failed, so the kubelet killed the container.",
            POST_START_REMEDY,
        ),
        "its postStart hook failed, so the kubelet killed it",
    ),
    (
        Code("RunContainerError", "The runtime could not start a container.", _CORRECT),
        "the runtime could not start it",
    ),
)
_CODES_AND_CAUSES = {code.code: (code, cause) for code, cause in _START_FAILURES}

RESTARTED = Code(
    "Restarted",
    "A container has restarted.",
    "Read the log from before the restart: `kubectl logs POD -c CONTAINER --previous`. To search "
    "it for known errors, run `rdma-webhook why POD --logs`.",
)
KILLED = Code(
    "Killed",
    "The kernel or the kubelet killed a container.",
    "Read the container's log. If the node's kernel log has a line with \"out of memory\", memory "
    "was the cause: see `rdma-webhook why OOMKilled`.",
)
CONTAINER_FAILED = Code(
    "ContainerFailed",
    "A container ended with an exit code other than 0.",
    "Search the container's log for known errors: `rdma-webhook why POD --logs`.",
)
OOM_KILLED = Code(
    "OOMKilled",
    "A container was killed because it used more memory than its limit, or because the node ran "
    "out of memory. Registered memory counts against the limit.",
    "Raise limits.memory or, if the node ran out of memory, request as much memory as the "
    "container uses.",
)
START_ERROR = Code(
    "StartError",
    "The runtime could not start the command of a container. The container did not run, so it has "
    "no log.",
    "Correct the problem that the runtime's message reports: usually, the image does not contain "
    "the command.",
)
CODES = (
    *(code for code, _ in _START_FAILURES),
    START_ERROR,
    RESTARTED,
    KILLED,
    CONTAINER_FAILED,
    OOM_KILLED,
)

#: Source: kubernetes, pkg/kubelet/kuberuntime/security_context_others.go.
_NON_ROOT = re.compile(r"runAsUser breaks non-root policy|runAsNonRoot and image (?:will run|has)")
_REMOVE_NON_ROOT = (
    "Remove runAsNonRoot from the securityContext of the pod or the container: IPC_LOCK has an "
    "effect for root only."
)
_CORRECT_MOUNT = (
    "Correct the volumeMount that the message names. With subPath, a file can be mounted only at "
    "the path of a file, and a directory only at that of a directory."
)
_EXIT_BY_SIGSEGV = 139


_CONTAINER = "Container"


def container_findings(evidence: PodEvidence) -> Iterator[Finding]:
    """Yield findings on each container that does not run as it should."""
    status = evidence.pod.status
    for container in status.init_container_statuses:
        yield from _container(evidence, container, _Subject("Init container", container.name))
    for container in status.container_statuses:
        yield from _container(evidence, container, _Subject(_CONTAINER, container.name))


class _Subject(NamedTuple):
    """A container, as the findings name it."""

    kind: str
    name: str

    @property
    def title(self) -> str:
        """The beginning of a sentence: "Init container fetch"."""
        return f"{self.kind} {self.name}"


def _container(
    evidence: PodEvidence, container: ContainerStatus, subject: _Subject
) -> Iterator[Finding]:
    restarts = container.restart_count
    waiting = container.state.waiting
    if waiting and waiting.reason in _CODES_AND_CAUSES:
        yield _not_started_finding(subject.title, waiting)
    ended = _end_of(container)
    if ended and not _is_good_end(ended) and not is_by_deletion(evidence, container.name, ended):
        yield _end(evidence, subject, ended, restarts)
    elif restarts:
        yield _restarted(evidence, container, subject)


def _restarted(evidence: PodEvidence, container: ContainerStatus, subject: _Subject) -> Finding:
    """Return the finding on a container that was restarted without a failure."""
    times, before = _times(container.restart_count), container.last_state.terminated
    commands = log_commands(evidence, subject.name, previous=True)
    if subject.kind != _CONTAINER or before is None or not _is_good_end(before):
        return RESTARTED.finding("unsure", f"{subject.title} has restarted {times}.", commands)
    text = (
        f"{subject.title} ended with exit code 0, and has restarted {times}: with restartPolicy "
        "Always, it always does."
    )
    remedy = f"If its command is meant to end, run it in a Job. Otherwise, {commands[0].lower()}"
    level: Level = "unsure" if container.state.is_running else "error"
    return RESTARTED.finding(level, text, f"{remedy}{commands[1:]}")


def _not_started_finding(title: str, waiting: Waiting) -> Finding:
    """Return the finding on a container that the kubelet cannot start."""
    code, cause = _CODES_AND_CAUSES[waiting.reason]
    remedy = code.remedy
    if _NON_ROOT.search(waiting.message):
        cause, remedy = "its user contradicts runAsNonRoot", _REMOVE_NON_ROOT
    return code.finding(
        "error", f"{title} cannot start, since {cause}: {cut(waiting.message)}", remedy
    )


def log_remedy(evidence: PodEvidence) -> str:
    """Return where to search the log for the cause, or what to do if there is no log."""
    for ended in map(_end_of, evidence.pod.status.container_statuses):
        if ended is not None and _has_not_started(ended):
            return _start_remedy(ended)
    if evidence.logs is None:
        pod = shlex.join(_arguments(evidence))
        return f"Search the log for known errors: `rdma-webhook why {pod} --logs`."
    return SEE_LOG_CHAPTER


#: The remedy of a finding whose cause may be in the log, if the log was searched.
SEE_LOG_CHAPTER = 'The cause, if known, is below, under "What the log shows".'


def _end_of(container: ContainerStatus) -> Terminated | None:
    """Return how a container ended last; None if it has not ended yet."""
    return container.state.terminated or container.last_state.terminated


def _has_not_started(ended: Terminated) -> bool:
    """Return whether the end of a container was that its command could not be started.

    The kubelet passes on containerd's reason; Docker's is ContainerCannotRun.
    """
    return ended.reason in ("StartError", "ContainerCannotRun")


def _start_remedy(ended: Terminated) -> str:
    return _CORRECT_MOUNT if "mount" in ended.message else START_ERROR.remedy


def has_completed(container: ContainerStatus) -> bool:
    """Return whether a container has ended without a failure, and will not run again."""
    ended = container.state.terminated
    return ended is not None and _is_good_end(ended)


def has_failed(container: ContainerStatus) -> bool:
    """Return whether the last end of a container was a failure."""
    ended = _end_of(container)
    return ended is not None and not _is_good_end(ended)


def _is_good_end(ended: Terminated) -> bool:
    return ended.exit_code == 0 and ended.reason != "OOMKilled"


def _times(number: int) -> str:
    return "once" if number == 1 else f"{number} times"


def _end(evidence: PodEvidence, subject: _Subject, ended: Terminated, restarts: int) -> Finding:
    exit_code = ended.exit_code
    times = f", and has restarted {_times(restarts)}" if restarts else ""
    if ended.reason == "OOMKilled":
        return _oom(evidence, subject, times)
    if _has_not_started(ended):
        text = f"{subject.title} could not be started{times}: {cut(ended.message)}"
        return START_ERROR.finding("error", text, _start_remedy(ended))
    cause, remedy = cause_of_kill(evidence, subject.name, ended)
    if cause or exit_code == EXIT_BY_SIGKILL:
        text = f"{subject.title} was killed (exit code {exit_code}){cause}{times}."
        return KILLED.finding("error", text, remedy or KILLED.remedy)
    crash = " (a segmentation fault)" if exit_code == _EXIT_BY_SIGSEGV else ""
    message = cut(ended.message)
    text = f"{subject.title} ended with exit code {exit_code}{crash}{times}."
    text = f"{text} {message}" if message else text
    remedy = SEE_LOG_CHAPTER
    if evidence.logs is None:
        remedy = log_commands(evidence, subject.name, previous=restarts > 0)
    return CONTAINER_FAILED.finding("error", text, remedy)


def log_commands(evidence: PodEvidence, container: str, *, previous: bool) -> str:
    """Return the commands that show the log of a container."""
    before = " --previous" if previous else ""
    pod = shlex.join(_arguments(evidence))
    arguments = shlex.join(_arguments(evidence, "-c", container))
    return (
        f"Read its log: `kubectl logs {arguments}{before}`. "
        f"`rdma-webhook why {pod} --logs` searches it for known errors of RDMA."
    )


def _arguments(evidence: PodEvidence, *options: str) -> list[str]:
    """Return the pod as arguments of kubectl and `why`, then `options`; not yet quoted."""
    return [evidence.name or "POD", "-n", evidence.namespace_name, *options]


def _oom(evidence: PodEvidence, subject: _Subject, times: str) -> Finding:
    limit = _memory_limit(evidence.pod, subject.name)
    if limit:
        text = (
            f"{subject.title} used more memory than its limit of {limit} and was killed "
            f"(OOMKilled){times}. Registered memory counts against the limit."
        )
        remedy = f"Raise limits.memory.{_without_limit(evidence, subject)}"
    else:
        text = f"{subject.title} was killed because the node ran out of memory (OOMKilled){times}."
        remedy = "Request as much memory as the container uses."
    return OOM_KILLED.finding("error", text, remedy)


def _without_limit(evidence: PodEvidence, subject: _Subject) -> str:
    """Return how the webhook would remove a limit that it has left; "" if it never would."""
    if subject.kind != _CONTAINER:
        return ""
    if evidence.annotations.get(MEMORY_LIMIT_ANNOTATION) == "keep":
        step = f"delete the annotation {MEMORY_LIMIT_ANNOTATION}: keep"
    elif evidence.status and REQUIRED.code in evidence.status.codes:
        step = "use a namespace that does not require a limit"
    else:
        return ""
    return f" Or let the webhook remove the limit: {step}."


def _memory_limit(pod: PodRecord, name: str) -> str:
    containers = (*pod.spec.containers, *pod.spec.init_containers)
    matches = (container for container in containers if name and container.name == name)
    return next((container.memory_limit for container in matches), "")
