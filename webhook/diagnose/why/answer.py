"""The answer: whether the pod has RDMA, and the chapters that explain it.

Evidence from the running pod (registered memory, NCCL's channels) outweighs the status, which has
only the view of admission.
"""

from __future__ import annotations

from webhook.diagnose.codes import CODE_ROWS, CODES, remedy_of
from webhook.diagnose.why.evidence import PodEvidence, StatusAnnotation
from webhook.diagnose.why.explanation import Chapter, Explanation, Level, Sentence
from webhook.diagnose.why.pod_status import status_findings
from webhook.diagnose.why.redecide import redecision_findings
from webhook.diagnose.why.request import applied_findings, rdma_requests, request_findings
from webhook.diagnose.why.runtime_evidence import (
    cause_before_rdma,
    log_findings,
    process_findings,
    rdma_in_use,
)
from webhook.diagnose.why.webhook_call import call_finding

_LEVELS: dict[str, Level] = {"yes": "good", "none": "good", "unsure": "unsure", "no": "problem"}


def explain_pod(evidence: PodEvidence) -> Explanation:
    """Explain why a pod has RDMA, or has not."""
    called = call_finding(evidence)
    rdma, answer = _answer(evidence, called)
    chapters = {
        "asked": tuple(request_findings(evidence)),
        "called": (called,),
        "done": tuple(applied_findings(evidence)),
        "now": tuple(status_findings(evidence)),
        "processes": tuple(process_findings(evidence)),
        "log": tuple(log_findings(evidence)),
        "today": tuple(redecision_findings(evidence)),
        "lacking": tuple(Sentence("NotRead", "fact", text) for text in evidence.lacking),
    }
    return Explanation(
        namespace=evidence.namespace_name,
        pod=evidence.name,
        owners=tuple(owner.title for owner in evidence.owners),
        rdma=rdma,
        answer=answer,
        chapters=tuple(
            Chapter(name, sentences) for name, sentences in chapters.items() if sentences
        ),
    )


def _answer(evidence: PodEvidence, called: Sentence) -> tuple[str, Sentence]:
    """Return the answer as a word and as a sentence."""
    rdma, code = rdma_in_use(evidence)
    status = evidence.status if called.code == "Called" else None
    if rdma and (status is None or status.rdma != rdma):
        return rdma, _by_use(rdma, code, status)
    requests = rdma_requests(evidence)
    expected = requests if status is None else status.rdma in ("yes", "unsure")
    if not rdma and expected and (cause := cause_before_rdma(evidence)):
        remedy = cause.remedy if status else called.remedy
        text = f"RDMA did not work ({_before(status)}). {cause.means}"
        return "no", Sentence(cause.code, "problem", text, remedy)
    if status is not None:
        return status.rdma, _by_status(status)
    if requests:
        text = (
            f"RDMA is not certain: the webhook was not called, but the pod requests {requests[0]} "
            "itself. Whether it has everything else that RDMA needs was not checked."
        )
        return "unsure", Sentence(called.code, "unsure", text, called.remedy)
    if called.level == "unsure":
        text = f"RDMA is not certain. {called.text}"
        return "unsure", Sentence(called.code, "unsure", text, called.remedy)
    reason = called.text.removeprefix("No: ")
    text = f"No RDMA, since the webhook was not called: {reason}"
    return "no", Sentence(called.code, "problem", text, called.remedy)


def _by_status(status: StatusAnnotation) -> Sentence:
    code = status.because
    over = f" over {status.fabric}" if status.fabric else ""
    starts = {
        "yes": f"The pod is equipped for RDMA{over}",
        "no": "No RDMA",
        "unsure": f"RDMA{over} is not certain",
        "none": "The pod itself needs no RDMA",
    }
    text = f"{starts[status.rdma]}: {_when(code)} ({code})."
    return Sentence(code or "Status", _LEVELS[status.rdma], text, remedy_of(code))


def _when(code: str) -> str:
    if code not in CODES:
        return "this version of rdma-webhook does not know why"
    sentence = next(row.when for row in CODE_ROWS if row.code == code).removesuffix(".")
    # An acronym stays as it is.
    return sentence if sentence[1:2].isupper() else sentence[0].lower() + sentence[1:]


def _by_use(rdma: str, code: str, status: StatusAnnotation | None) -> Sentence:
    """Return the sentence for RDMA or sockets in use, against or without a verdict at admission."""
    texts = {
        "MemoryRegistered": "RDMA is in use: a process of the pod holds registered memory",
        "RdmaInUse": "The log shows that RDMA is in use",
        "SocketsInUse": "RDMA is not in use: the log shows TCP sockets",
        "MixedTransports": "RDMA is only partly in use: the log shows TCP sockets too",
    }
    text = f"{texts[code]} ({_before(status)})."
    remedy = "" if rdma == "yes" else "The section on the log below says why, if it is known."
    return Sentence(code, _LEVELS[rdma], text, remedy)


def _before(status: StatusAnnotation | None) -> str:
    """Return the clause on the verdict at admission."""
    clauses = {
        "yes": "at admission it was equipped",
        "no": "at admission it was not equipped",
        "unsure": "at admission this was not certain",
        "none": "at admission it was taken for a launcher",
    }
    return clauses[status.rdma] if status is not None else "the webhook was not called"
