"""Admission warnings, and the hazards of a pod that affect RDMA on any fabric.

Warnings are single lines of ASCII, at most 120 characters each, under 4096 in total.

The API server drops a warning with a control character, and truncates warnings once the total
exceeds 4096 runes (apiserver, endpoints/filters/warning.go).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import NamedTuple

from webhook.decide.analysis import PodAnalysis
from webhook.decide.draft import Draft
from webhook.model.decision import Outcome, Rdma, Reason, Verdict
from webhook.model.pod.sandbox import istio_evidence, lacks_cluster_dns

MAX_WARNING_LENGTH = 120
MAX_TOTAL_LENGTH = 4096
_VERDICT_PREFIXES: dict[Rdma, str] = {
    "no": "no RDMA: ",
    "unsure": "RDMA not certain: ",
}
_CONTINUED = "rdma.lab: more in annotation rdma.lab/status"


def warning_lines(
    verdict: Verdict, reason: Reason | None, message: str, outcomes: Iterable[Outcome]
) -> tuple[str, ...]:
    """Return the warnings of a decision, without duplicates, as many as fit."""
    lines = [
        _plain(f"rdma.lab: {sentence}")
        for sentence in warning_sentences(verdict, reason, message, outcomes)
    ]
    return _fitting(dict.fromkeys(lines)) if lines else ()


def warning_sentences(
    verdict: Verdict, reason: Reason | None, message: str, outcomes: Iterable[Outcome]
) -> Iterator[str]:
    """Yield the warnings for the user: the verdict first, unless the pod is equipped.

    `reason`: the reason why the pod as a whole got less than all mutations; `message` explains it.
    Nothing repeats the verdict.
    """
    if verdict.rdma in _VERDICT_PREFIXES:
        yield _VERDICT_PREFIXES[verdict.rdma] + verdict.message
    if reason is not None and reason is not verdict.because and verdict.rdma != "none":
        yield f"{reason.code}: {message}"
    for outcome in outcomes:
        if outcome.status == "warned" and outcome.reason.code != verdict.because.code:
            subject = f"{outcome.mutation} {outcome.container}".rstrip()
            yield f"{subject}: {outcome.message}"


def _plain(line: str) -> str:
    line = line[: MAX_WARNING_LENGTH + 1]  # so that a long line is not searched to its end
    if not (line.isascii() and line.isprintable()):
        line = "".join(letter if " " <= letter <= "~" else "?" for letter in line)
    return line if len(line) <= MAX_WARNING_LENGTH else line[: MAX_WARNING_LENGTH - 3] + "..."


def _fitting(lines: Iterable[str]) -> tuple[str, ...]:
    fitting: list[str] = []
    room = MAX_TOTAL_LENGTH - len(_CONTINUED) - 1
    for line in lines:
        room -= len(line)
        if room <= 0:
            return (*fitting, _CONTINUED)
        fitting.append(line)
    return tuple(fitting)


# Warn about hazards outside the containers that affect RDMA on any fabric.

ISTIO = Reason(
    "IstioSidecar",
    "Istio is expected to add its proxy to the pod, and the proxy intercepts the TCP connections "
    "between ranks.",
    remedy='Set the label sidecar.istio.io/inject: "false" on the pod.',
    rdma="unsure",
)
HOST_DNS = Reason(
    "HostNetworkDNS",
    "The pod has hostNetwork: true, but its dnsPolicy is neither ClusterFirstWithHostNet nor "
    "None, so the pod cannot resolve the names of Services.",
    remedy="Set dnsPolicy: ClusterFirstWithHostNet in the pod's spec.",
)
HOST_PATH = Reason(
    "HostPathDevices",
    "A hostPath volume makes RDMA devices visible in a container, but a container that is not "
    "privileged can open only those that a device plugin or a DRA driver provides.",
    remedy="Remove the hostPath volume; the device plugin or the DRA driver provides the devices.",
)
HAZARD_REASONS = (ISTIO, HOST_DNS, HOST_PATH)


class PodHazards(NamedTuple):
    """The hazards outside the containers that the verdict depends on."""

    #: Why Istio is expected to add its proxy to the pod, or "".
    istio: str = ""
    #: The volumes with RDMA devices of the node: name → the node's path.
    infiniband_volumes: Mapping[str, str] = MappingProxyType({})


def warn_of_hazards(draft: Draft, analysis: PodAnalysis) -> PodHazards:
    """Warn about Istio's proxy, DNS in the host's network, and devices by hostPath.

    The verdict does not depend on DNS, so the result leaves it out.
    """
    pod = analysis.original
    if not analysis.targets and not analysis.launchers:
        return PodHazards()
    istio = istio_evidence(pod, analysis.namespace.labels or {})
    if istio:
        message = f'Istio ({istio}) proxies TCP; set sidecar.istio.io/inject: "false"'
        draft.warned("", ISTIO, message)
    if lacks_cluster_dns(pod):
        message = (
            "with hostNetwork, Service names resolve only with dnsPolicy: ClusterFirstWithHostNet"
        )
        draft.warned("", HOST_DNS, message)
    paths = pod.infiniband_volumes
    for target in analysis.targets if paths else ():
        container = analysis.containers[target.path]
        volume = next(container.mounted_volumes(paths), None)
        if volume is not None and not container.privileged:
            access = "only a device plugin's resource gives access"
            message = f"hostPath {paths[volume]} shows devices, but {access}"
            draft.warned(target.name, HOST_PATH, message)
    return PodHazards(istio, paths)
