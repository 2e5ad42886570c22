"""Init containers and sidecars that the pod's containers wait for."""

from __future__ import annotations

from collections.abc import Iterator

from webhook.diagnose.why.container_kills import event_messages
from webhook.diagnose.why.container_status import log_commands
from webhook.diagnose.why.evidence import PodEvidence
from webhook.diagnose.why.messages import cut
from webhook.kube.container_states import Running
from webhook.model.finding import Code, Finding

WAITS_FOR_SIDECAR = Code(
    "WaitsForSidecar",
    "The pod's containers wait for the startupProbe of a sidecar.",
    "Read the log of the sidecar, and correct the sidecar or its startupProbe.",
)
WAITS_FOR_INIT_CONTAINER = Code(
    "WaitsForInitContainer",
    "The pod's containers wait for an init container to end.",
    "Read the log of the init container. If the init container waits for another pod, run "
    "`rdma-webhook why` for that pod.",
)
CODES = (WAITS_FOR_SIDECAR, WAITS_FOR_INIT_CONTAINER)


def init_container_findings(evidence: PodEvidence) -> Iterator[Finding]:
    """Yield a finding on each init container that keeps a pending pod's containers waiting."""
    if evidence.pod.status.phase != "Pending":
        return
    sidecars = {
        container.name
        for container in evidence.pod.spec.init_containers
        if container.restart_policy == "Always"
    }
    for status in evidence.pod.status.init_container_statuses:
        running = status.state.running
        if running is None:
            continue
        if status.name not in sidecars:
            yield _waits_for_end(evidence, status.name, running)
        elif not status.started:
            yield _waits_for_probe(evidence, status.name)


def _waits_for_end(evidence: PodEvidence, name: str, running: Running) -> Finding:
    start = running.started_at
    since = f", which has been running since {start}" if start else ""
    text = f"The pod's containers wait for its init container {name}{since}."
    commands = log_commands(evidence, name, previous=False)
    remedy = (
        f"{commands} If the init container waits for another pod, run `rdma-webhook why` for that "
        "pod."
    )
    return WAITS_FOR_INIT_CONTAINER.finding("error", text, remedy)


def _waits_for_probe(evidence: PodEvidence, name: str) -> Finding:
    text = f"The pod's containers wait for the startupProbe of its sidecar {name}"
    messages = event_messages(evidence, "Unhealthy", name)
    text = f"{text}: {cut(messages[-1])}" if messages else f"{text}."
    commands = log_commands(evidence, name, previous=False)
    return WAITS_FOR_SIDECAR.finding("error", text, f"{commands} {_CORRECT_SIDECAR}")


_CORRECT_SIDECAR = "Correct the sidecar or its startupProbe."
