"""Why the kubelet stopped a container: the Events from the run that it ended.

Source: kubernetes, pkg/kubelet/kuberuntime (killContainer reports before it kills).
"""

from __future__ import annotations

import re

from webhook.diagnose.why.evidence import PodEvidence
from webhook.diagnose.why.messages import cut
from webhook.kube.container_states import Terminated

POST_START_REMEDY = "Correct lifecycle.postStart of the container."
#: The reason of a pod that ran longer than its activeDeadlineSeconds.
DEADLINE = "DeadlineExceeded"
DEADLINE_REMEDY = "Raise activeDeadlineSeconds, or remove it."
#: The message of the Event Killing. Source: kubernetes, pkg/kubelet/kuberuntime,
#: computePodActions.
_FAILED_PROBE = re.compile(r"failed (liveness|startup) probe")
#: The exit codes of a container that a signal ended: 128 and the number of the signal.
EXIT_BY_SIGKILL, _EXIT_BY_SIGTERM = 137, 143
#: The exit codes of a container that the kubelet stopped.
_SIGNALED = (EXIT_BY_SIGKILL, _EXIT_BY_SIGTERM)


def event_messages(
    evidence: PodEvidence, reason: str, container: str, run: Terminated | None = None
) -> list[str]:
    """Return the messages of the Events with this reason about a container, oldest first.

    `run`: only those from a run of it. Events stay for an hour, whatever happened since.
    """
    return [
        event.text
        for event in evidence.events or ()
        if event.reason == reason
        and f"{{{container}}}" in event.about.field_path
        and (run is None or _is_during(run, event.time))
    ]


def _is_during(run: Terminated, time: str) -> bool:
    """Return whether a time is in a run; an unknown start or end excludes nothing."""
    return run.started_at <= time and (not run.finished_at or time <= run.finished_at)


def is_by_deletion(evidence: PodEvidence, name: str, ended: Terminated) -> bool:
    """Return whether the kubelet stopped a container since the pod is being deleted."""
    if not evidence.pod.metadata.is_deleted or ended.reason == "OOMKilled":
        return False
    stops = event_messages(evidence, "Killing", name, ended)
    return ended.exit_code in _SIGNALED and f"Stopping container {name}" in stops


def cause_of_kill(evidence: PodEvidence, container: str, run: Terminated) -> tuple[str, str]:
    """Return a clause on why the kubelet killed a container, and the remedy; "" if unknown."""
    if run.exit_code not in _SIGNALED:
        return "", ""
    if evidence.pod.status.reason == DEADLINE:
        return ", since the pod ran longer than its activeDeadlineSeconds", DEADLINE_REMEDY
    hooks = event_messages(evidence, "FailedPostStartHook", container, run)
    if hooks:
        return f", since its postStart hook failed ({cut(hooks[-1])})", POST_START_REMEDY
    for killing in reversed(event_messages(evidence, "Killing", container, run)):
        if match := _FAILED_PROBE.search(killing):
            failures = event_messages(evidence, "Unhealthy", container, run)
            return _cause_by_probe(failures, match[1])
    return "", ""


def _cause_by_probe(messages: list[str], kind: str) -> tuple[str, str]:
    """Return the clause and the remedy for a kill after a probe, "liveness" or "startup"."""
    failures = [message for message in messages if message.lower().startswith(kind)]
    details = f" ({cut(failures[-1])})" if failures else ""
    remedy = f"Correct {kind}Probe of the container, or what it checks."
    return f", since its {kind}Probe failed{details}", remedy
