"""What holds a resource that a pending pod waits for, and how the pod can get it."""

from __future__ import annotations

import re
import shlex
from collections.abc import Collection, Iterable, Sequence

from webhook.diagnose.why.evidence import PodEvidence, UnfinishedPod
from webhook.model.finding import Code, Finding
from webhook.model.names import first_names, natural_key, shortened_list

INSUFFICIENT = Code(
    "Insufficient",
    "The pod is pending: no node that it may use has enough of a resource free.",
    "Wait until a pod that holds the resource ends, or request a smaller amount.",
)
_MAX_HOLDERS = 4


def in_use_finding(evidence: PodEvidence, name: str, nodes: Collection[str], quote: str) -> Finding:
    """Return the finding on a resource that is in use, with the pods that hold most of it.

    `quote` goes at the end of the text: a space, and a sentence with the scheduler's message.
    """
    listed = shortened_list(sorted(nodes, key=natural_key))
    start = f"The pod is waiting for {name}: no node that the pod may use"
    text = f"{start} ({listed}) has enough of it free."
    holders = _holders(evidence, name, nodes)
    if not holders:
        return INSUFFICIENT.finding("error", f"{text}{quote}")
    holdings = [f"{pod.name} ({pod.amounts[name]} on {pod.node})" for pod in holders]
    remedy = _without_surge(evidence, holders) or _remedy_against(evidence, holders)
    text = f"{text} It is held by {first_names(holdings, max_names=_MAX_HOLDERS)}.{quote}"
    return INSUFFICIENT.finding("error", text, remedy)


def _remedy_against(evidence: PodEvidence, holders: Sequence[UnfinishedPod]) -> str:
    """Return the remedy for a resource that other pods hold.

    Pods of the same controller, except for a Job's, do not end before this pod has run.
    """
    names = shortened_list([pod.name for pod in holders])
    owners = evidence.owners
    if owners and owners[0].kind != "Job" and all(_has_owner(evidence, pod) for pod in holders):
        return (
            f"Other pods of {owners[-1].title} hold it ({names}): let each pod request less, run "
            "fewer of these pods, or add nodes with the resource."
        )
    return (
        "Wait until one of these pods ends, request less, or give the pod a PriorityClass above "
        f"theirs: {names}."
    )


def _has_owner(evidence: PodEvidence, pod: UnfinishedPod) -> bool:
    """Return whether a pod has the same controller as the pod of the evidence."""
    namespace = pod.name.partition("/")[0]
    return (namespace, pod.controller) == (evidence.namespace_name, evidence.owners[0].title)


def _without_surge(evidence: PodEvidence, holders: Iterable[UnfinishedPod]) -> str:
    """Return the remedy for a pod that waits for older ones of its Deployment; "" for others.

    A Deployment keeps those until newer ones are ready, as far as its strategy says.
    """
    if [owner.kind for owner in evidence.owners] != ["ReplicaSet", "Deployment"]:
        return ""
    replicas, deployment = evidence.owners
    name, namespace = deployment.metadata.name, evidence.namespace_name
    # A Deployment names its ReplicaSets after itself, with a hash of the template.
    of_deployment = re.compile(rf"{re.escape(f'{namespace}/ReplicaSet {name}')}-[a-z0-9]+")
    older = [
        pod.name
        for pod in holders
        if pod.controller != replicas.title
        and of_deployment.fullmatch(f"{pod.name.partition('/')[0]}/{pod.controller}")
    ]
    if not older:
        return ""
    arguments = shlex.join([name, "-n", namespace, "--patch", _NO_SURGE])
    return (
        f"{deployment.title} keeps its older pods ({shortened_list(older)}) until newer ones are "
        "ready. If its rollout is stuck, let it end an older pod first: `kubectl patch "
        f"deployment {arguments}`."
    )


_NO_SURGE = (
    '{"spec":{"strategy":{"type":"RollingUpdate","rollingUpdate":'
    '{"maxSurge":0,"maxUnavailable":1}}}}'
)


def _holders(evidence: PodEvidence, name: str, nodes: Collection[str]) -> list[UnfinishedPod]:
    """Return the pods that hold a resource on these nodes, the largest amounts first."""
    holders = [
        pod for pod in evidence.unfinished_pods or () if pod.node in nodes and pod.amounts.get(name)
    ]
    return sorted(holders, key=lambda pod: (-pod.amounts[name], pod.name))
