"""A pod whose controller has another template by now, and has not replaced the pod.

What such a pod was created from is unknown: only the present template can be read.
"""

from __future__ import annotations

from webhook.diagnose.why.evidence import PodEvidence
from webhook.diagnose.why.replacement import replacement_obstacle, replacement_remedy
from webhook.kube.objects import KubernetesObject
from webhook.model.finding import Code, Finding, Level

OLD_TEMPLATE = Code(
    "OldTemplate",
    "The pod template of the controller has been changed since the pod was created, and the "
    "controller has not replaced the pod.",
    "If the pod's ordinal is below updateStrategy.rollingUpdate.partition of its StatefulSet, "
    "first set that field to 0. Then delete the pod.",
)
CODES = (OLD_TEMPLATE,)


def old_template_finding(
    evidence: PodEvidence, level: Level, blamed: tuple[str, ...] = ()
) -> Finding:
    """Return the finding on a pod with an old template.

    `blamed`: what the verdict blames and the present template does not have.
    """
    controller = evidence.owners[0]
    template = f"pod template of {controller.title}"
    start = f"The {template} has been changed since the pod was created"
    if blamed:
        start = (
            f"{', '.join(blamed)}: not in the present {template}, which has been changed since the "
            "pod was created"
        )
    text = f"{start}; the {controller.kind} {not_replaced_predicate(controller, evidence)}."
    return OLD_TEMPLATE.finding(level, text, replacement_remedy(controller, evidence))


def not_replaced_predicate(controller: KubernetesObject, evidence: PodEvidence) -> str:
    """Return the predicate on a controller that has not replaced the pod, with the cause."""
    obstacle = replacement_obstacle(controller, evidence)
    return f"has not replaced the pod{f', since {obstacle.cause}' if obstacle else ''}"


def with_old_template(answer: Finding, evidence: PodEvidence) -> Finding:
    """Return the answer of admission with the change of the template, which may settle it."""
    status = evidence.status
    if status is None or answer.level == "ok" or answer.code != status.verdict_reason:
        return answer
    finding = old_template_finding(evidence, answer.level)
    remedy = f"If the change settles this: {finding.remedy} Otherwise: {answer.remedy}"
    return answer._replace(text=f"{answer.text} {finding.text}", remedy=remedy)
