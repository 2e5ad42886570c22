"""Why a pod of a run has no RDMA, or does not start: what `why` says of it, in a sentence."""

from __future__ import annotations

from collections.abc import Callable

from webhook.diagnose.verify.runs.run_cluster import PodProblem
from webhook.diagnose.why.answer import explain_pod
from webhook.diagnose.why.collector import Collector, PodReads, Wanted
from webhook.diagnose.why.explanation import Explanation, Sentence
from webhook.errors import WebhookError
from webhook.kube.api import ObjectReads


def pod_problems(
    reads: ObjectReads, inside: PodReads, namespace: str
) -> Callable[[str], PodProblem | None]:
    """Return what explains a pod by its name; None for a pod that cannot be read, or is well."""
    collector = Collector(reads, inside, Wanted())

    def explain(name: str) -> PodProblem | None:
        try:
            found = _worst(explain_pod(collector.collect(namespace, name)))
        except WebhookError:
            return None
        return found and PodProblem(found.code, found.text, found.remedy)

    return explain


def _worst(explanation: Explanation) -> Sentence | None:
    """Return why the pod has no RDMA, or else what keeps it from running."""
    if explanation.rdma == "no":
        return explanation.answer
    for chapter in explanation.chapters:
        if chapter.name == "now":
            problems = (one for one in chapter.sentences if one.level == "problem")
            return next(problems, None)
    return None
