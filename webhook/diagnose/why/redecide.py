"""What would be decided today, with a fabrics file, from the template that the pod was made from.

A live pod is already patched, so deciding on it again says little: its resources and variables
would count as the user's own. A pod that the webhook did not see is decided on as it is.
"""

from __future__ import annotations

from collections.abc import Iterator

from webhook.decide import decide
from webhook.decide.scope import Context
from webhook.diagnose.remedies import REMEDIES
from webhook.diagnose.why.evidence import PodEvidence
from webhook.diagnose.why.explanation import Level, Sentence
from webhook.kube.objects import Pod
from webhook.model.decision import Decision
from webhook.model.fabric import Fabrics
from webhook.model.pod import PodManifest
from webhook.preview.workloads.controllers import expected_pods
from webhook.preview.workloads.templates import templates_of

_WORDS = {"no": "no RDMA", "unsure": "RDMA not certain", "none": "a launcher"}
_LEVELS: dict[str, Level] = {"yes": "good", "none": "good", "unsure": "unsure", "no": "problem"}


def redecision_findings(evidence: PodEvidence) -> Iterator[Sentence]:
    """Compare today's decision with that in the status; nothing without a fabrics file."""
    if evidence.fabrics is None:
        return
    source, manifest = _template(evidence)
    if manifest is None:
        text = (
            "Not comparable: the pod is already patched, and the template that it was made from "
            "could not be read."
        )
        remedy = "Preview the manifest that it was made from: rdma-webhook preview -c FABRICS FILE."
        yield Sentence("NotComparable", "fact", text, remedy)
        return
    decision = decide(manifest, _context(evidence, evidence.fabrics))
    yield _compared(evidence, source, decision)


def _compared(evidence: PodEvidence, source: str, decision: Decision) -> Sentence:
    verdict = decision.verdict
    assert verdict is not None  # the pod is decided on as if it had opted in
    because, status = verdict.because.code, evidence.status
    level, what = _LEVELS[verdict.rdma], _words(decision)
    remedy = REMEDIES[because]
    if status is None:
        text = f"If the webhook were called for {source}: {what} ({because})."
        return Sentence("WouldBe", level, text, remedy)
    if (status.rdma, status.because) == (verdict.rdma, because):
        return Sentence("SameToday", "fact", f"The same, from {source}: {what} ({because}).")
    text = f"From {source}, it would be: {what} ({because})."
    again = f"Create the pod again to get that. {remedy}".strip()
    return Sentence("OtherToday", level, text, again)


def _words(decision: Decision) -> str:
    """Say what is decided, and why unless the pod is equipped."""
    verdict = decision.verdict
    assert verdict is not None
    if verdict.rdma == "yes":
        return f"equipped for RDMA over {decision.fabric}"
    return f"{_WORDS[verdict.rdma] if decision.allowed else 'denied'}: {verdict.message}"


def _template(evidence: PodEvidence) -> tuple[str, PodManifest | None]:
    """Return a pod as it was before the webhook, and what it was read from."""
    for owner in evidence.owners:
        for template in templates_of(owner.manifest):
            for expected in expected_pods(template):
                if _is_of(Pod.read(expected.pod), evidence.pod):
                    return f"the template of {owner.title}", expected.pod
    return ("this pod", evidence.pod.manifest) if evidence.status is None else ("", None)


def _is_of(template: Pod, pod: Pod) -> bool:
    """Return whether a pod can be made from a template: same containers, and its labels."""
    labels = template.metadata.labels.items() <= pod.metadata.labels.items()
    return labels and _containers(template) == _containers(pod)


def _containers(pod: Pod) -> list[str]:
    return [container.name for container in pod.spec.containers]


def _context(evidence: PodEvidence, fabrics: Fabrics) -> Context:
    """Return what the webhook would know."""
    facts = evidence.facts
    space, inventory = facts.namespace(evidence.namespace_name), facts.inventory(fabrics)
    return Context(fabrics=fabrics, namespace=space, inventory=inventory, enable=True)
