"""What the webhook did to the pod, and what it did not, by `rdma.lab/status`."""

from __future__ import annotations

from collections.abc import Iterator

from webhook.decide.mutations import MUTATIONS
from webhook.diagnose.codes import CODE_ROWS, is_code
from webhook.diagnose.remedies import REMEDIES
from webhook.diagnose.why.evidence import Gathered, PodStatus
from webhook.diagnose.why.explanation import Sentence

_SUMMARIES = {mutation.name: mutation.summary for mutation in MUTATIONS}


def tell_done(gathered: Gathered) -> Iterator[Sentence]:
    """Tell each mutation that was applied, and each code of what was not, once."""
    status = gathered.status
    if status is None:
        yield Sentence("Nothing", "fact", "Nothing.")
        return
    yield from _applied(status.applied)
    told = {status.because}
    for codes in (_whole(status), status.skipped, status.warned):
        if isinstance(codes, int):
            text = f"{codes} more reasons, for which the annotation has no room."
            yield Sentence("Shortened", "unsure", text, _PREVIEW)
            continue
        for code in codes:
            if code not in told:
                told.add(code)
                yield tell_code(code, status)


_PREVIEW = "Run rdma-webhook preview on the pod's manifest to see all of them."


def _whole(status: PodStatus) -> tuple[str, ...]:
    return (status.reason,) if status.reason else ()


def _applied(names: tuple[str, ...] | int) -> Iterator[Sentence]:
    if not names:
        yield Sentence("NothingApplied", "fact", "It changed nothing.")
    elif isinstance(names, int):
        text = f"It applied {names} mutations; the annotation has no room for their names."
        yield Sentence("Shortened", "unsure", text, _PREVIEW)
    else:
        for name in names:
            summary = _SUMMARIES.get(name, "not known to this version of rdma-webhook")
            yield Sentence("Applied", "good", f"{name}: {summary}.")


def tell_code(code: str, status: PodStatus) -> Sentence:
    """Tell what a code of the status means, in the mutations that were not applied."""
    if not is_code(code):
        text = f"{code}: not known to this version of rdma-webhook."
        return Sentence(
            code, "unsure", text, "Use the version of rdma-webhook that runs in the cluster."
        )
    rows = [row for row in CODE_ROWS if row.code == code and not row.quiet]
    applied = () if isinstance(status.applied, int) else status.applied
    skipped = [row for row in rows if row.part not in applied] or rows
    whens = " Or: ".join(dict.fromkeys(row.when for row in skipped))
    remedy = REMEDIES.get(code, "")
    return Sentence(code, "unsure" if remedy else "fact", f"{code}: {whens}", remedy)
