"""Reports built by hand, with one pod for each kind of result."""

from __future__ import annotations

from typing import Any

from webhook.decide.reasons import PATCHED
from webhook.model.decision import Decision, Outcome, PatchOp, Rdma, Reason, Status, Verdict
from webhook.preview.report.record import Preview

NOT_OPTED_IN = Reason("NotOptedIn", "The pod did not ask.", "")
CONFLICT = Reason("FabricConflict", "Two things name different fabrics.", "", rdma="no")
EQUIPPED = Reason("Equipped", "All is right.", "", rdma="yes")


def outcome(
    mutation: str,
    container: str,
    status: Status,
    message: str,
    *ops: PatchOp,
    reportable: bool = True,
) -> Outcome:
    """Make an outcome whose reason code follows from its status."""
    code = {"applied": "Added", "already": "Present", "skipped": "NotNeeded"}.get(status, "Odd")
    return Outcome(
        mutation, container, status, Reason(code, "", "", reportable=reportable), message, ops
    )


def patched(*outcomes: Outcome, **fields: Any) -> Decision:
    """Make a decision for fabric v100-ib with these outcomes and their operations as its patch."""
    ops = tuple(op for outcome in outcomes for op in outcome.ops)
    given: dict[str, Any] = {
        "allowed": True,
        "reason": PATCHED,
        "verdict": Verdict.of(EQUIPPED, "all is right"),
        "fabric": "v100-ib",
        "fabric_evidence": "nvidia.com/v100 in container trainer",
        "outcomes": outcomes,
        "patch": ops,
        "pod": {"spec": {"containers": []}},
    }
    return Decision(**{**given, **fields})


def judged(rdma: Rdma, sentence: str, *outcomes: Outcome, **fields: Any) -> Decision:
    """Make such a decision with another verdict, whose reason code is Because."""
    verdict = Verdict.of(Reason("Because", "", "", rdma=rdma), sentence)
    return patched(*outcomes, verdict=verdict, **fields)


def not_opted_in() -> Decision:
    """Make a decision for a pod that did not opt in."""
    return Decision(allowed=True, reason=NOT_OPTED_IN, message=NOT_OPTED_IN.clause, pod={})


def denied(message: str = "two fabrics") -> Decision:
    """Make a decision that denies a pod."""
    verdict = Verdict.of(CONFLICT, message)
    return Decision(
        allowed=False, reason=CONFLICT, message=message, verdict=verdict, pod={"spec": {}}
    )


def preview(decision: Decision, **fields: Any) -> Preview:
    """Make the preview of Deployment lab/trainer in train.yaml with this decision."""
    given: dict[str, Any] = {
        "source": "train.yaml",
        "line": 1,
        "document": 0,
        "template_path": ("spec", "template"),
        "kind": "Deployment",
        "name": "trainer",
        "namespace": "lab",
        "called": True,
        "called_because": "namespace lab has the label",
        "decision": decision,
        "pod": decision.pod,
        "annotations_location": "spec.template.metadata.annotations",
    }
    return Preview(**{**given, **fields})
