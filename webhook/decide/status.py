"""The `rdma.lab/status` annotation: a line of JSON with what was done, and what was not.

    {"rdma":"unsure","because":"MemlockUnknown","fabric":"v100-ib","applied":["ipc-lock"],
     "skipped":["UserMount"],"warned":["NonRoot"],"config":"0123456789ab"}

`libraries` is present unless NCCL alone moves the pod's data: "NIXL,NCCL".
`reason` is present if the pod as a whole got less than all mutations (`ForeignNIC`, …), and
`because` does not already explain it. `assumed` is the code of the assumption behind a `yes`. Each
other reason code occurs once: as `because`, `reason`, `skipped` or `warned`, whichever comes first.

The API server calls us twice if another plugin changed the pod after us. For the second call, the
mutations of the first are already applied, so their names and their warnings carry over from a
status with the same config hash. A user may write such a status, and the hash is not secret.
Therefore a status counts only if we could have written it, byte for byte, a mutation in it only if
this call finds it already applied, and its fabric only if the pod carries something of that fabric
(`examine.earlier_work`). Any other status is replaced.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

import orjson

from webhook.decide.analysis import NO_CALL, EarlierCall
from webhook.model.annotations import (
    MAX_ANNOTATIONS_SIZE,
    MAX_STATUS_LENGTH,
    STATUS_ANNOTATION,
    size_of,
)
from webhook.model.decision import Outcome, Reason, Verdict
from webhook.model.json import Json, JsonObject
from webhook.model.names import MAX_KEY_LENGTH

# Read a status as text: whether we could have written it, and under which configuration.
#
# A user may write a status too, and a configuration's hash is not secret. So a status allows
# nothing that the user could not request otherwise.

#: The fields with lists, or with counts instead.
COUNTED = ("applied", "skipped", "warned")
#: All fields, in their order.
ORDER = ("rdma", "because", "assumed", "fabric", "libraries", "reason", *COUNTED, "config")
_HASH = re.compile(r"[0-9a-f]{12}")


def read_own_status(annotations: Mapping[str, Json]) -> JsonObject:
    """Read a JSON object with our fields in our order and format; return {} for anything else."""
    written = annotations.get(STATUS_ANNOTATION)
    if not isinstance(written, str) or len(written) > MAX_STATUS_LENGTH:
        return {}
    try:
        body = orjson.loads(written)
        rewritten = orjson.dumps(body).decode()
    except (orjson.JSONDecodeError, orjson.JSONEncodeError):  # it writes less depth than it reads
        return {}
    ours = isinstance(body, dict) and list(body) == [key for key in ORDER if key in body]
    return body if ours and rewritten == written else {}


#: The fields that each status has.
_ALWAYS = ("rdma", "because", "fabric", "applied", "config")


def is_complete(annotations: Mapping[str, Json]) -> bool:
    """Return whether a pod has a status with all the fields that we always write.

    Its codes are not checked: another version of this program may have others.
    """
    return _is_complete(read_own_status(annotations))


def _is_complete(body: JsonObject) -> bool:
    if not all(key in body for key in _ALWAYS):
        return False
    config, fabric = body["config"], body["fabric"]
    return (
        isinstance(config, str)
        and _HASH.fullmatch(config) is not None
        and (fabric is None or isinstance(fabric, str))
        and isinstance(body["rdma"], str)
        and isinstance(body["because"], str)
        and isinstance(body["applied"], (list, int))
    )


def earlier_call(annotations: Mapping[str, Json]) -> EarlierCall:
    """Return the configuration and the fabric of the call that wrote the pod's status.

    A call that applied nothing left no work, and so no proof of its fabric.
    """
    body = read_own_status(annotations) if STATUS_ANNOTATION in annotations else {}
    if not _is_complete(body):
        return NO_CALL
    return EarlierCall(body["config"], body["fabric"] if body["applied"] else None)


def configuration_named_in(pod: Json) -> str:
    """Return the hash in the status of anything that claims to be a pod, or ""."""
    metadata = pod.get("metadata") if isinstance(pod, dict) else None
    annotations = metadata.get("annotations") if isinstance(metadata, dict) else None
    return earlier_call(annotations).config if isinstance(annotations, dict) else ""


class StatusSummary(NamedTuple):
    """The part of a status that concerns the pod as a whole."""

    verdict: Verdict
    fabric: str | None
    #: The reason of the decision; None for Patched or AlreadyPatched, whatever was skipped.
    reason: Reason | None
    config_hash: str


class StatusVocabulary(NamedTuple):
    """All names and codes that a status may contain."""

    #: The reason codes of each mutation, in the order of the mutations.
    mutations: Mapping[str, frozenset[str]]
    #: These, and the codes of outcomes that no mutation records; sorted.
    codes: tuple[str, ...]
    #: The verdict that each code explains.
    verdicts: Mapping[str, str | None]
    #: The codes of warnings that a later call copies from the status of the earlier one.
    persistent_warning_codes: frozenset[str] = frozenset()


def render(
    annotations: Mapping[str, Json],
    outcomes: Iterable[Outcome],
    summary: StatusSummary,
    vocabulary: StatusVocabulary,
) -> str:
    """Return the status for these outcomes, "" if the annotations leave no room for one."""
    room = _room(annotations)
    previous_status = _previous(
        annotations, summary.config_hash, vocabulary, crowded=room < MAX_STATUS_LENGTH
    )
    report = _report(outcomes, previous_status, vocabulary)
    verdict = summary.verdict
    because = verdict.because
    body: JsonObject = {"rdma": verdict.rdma, "because": because.code}
    if verdict.assumption is not None:
        body["assumed"] = verdict.assumption.code
    body["fabric"] = summary.fabric
    if verdict.libraries not in ((), ("NCCL",)):
        body["libraries"] = ",".join(verdict.libraries)
    named = {because.code}
    if summary.reason is not None and summary.reason is not because:
        body["reason"] = summary.reason.code
        named.add(summary.reason.code)
    body["applied"] = [name for name in vocabulary.mutations if name in report.applied]
    for field, codes in (("skipped", report.skipped), ("warned", report.warned)):
        if not codes <= named:
            body[field] = sorted(codes - named)
            named |= codes
    body["config"] = summary.config_hash
    return _within(body, room, previous_status.counts)


class _Report(NamedTuple):
    """The applied mutations, and the reason codes of skipped mutations and of warnings."""

    applied: set[str]
    skipped: set[str]
    warned: set[str]


def _report(
    outcomes: Iterable[Outcome], previous_status: _Previous, vocabulary: StatusVocabulary
) -> _Report:
    applied, skipped, warned, done = set[str](), set[str](), set[str](), set[str]()
    for mutation, _, status, reason, _, _ in outcomes:
        if status == "applied":
            applied.add(mutation)
        elif status == "already":
            done.add(mutation)
        elif status == "warned":
            warned.add(reason.code)
        elif status == "skipped" and reason.reportable:
            skipped.add(reason.code)
    for name in done.intersection(previous_status.applied):
        applied.add(name)
        warned.update(vocabulary.mutations[name].intersection(previous_status.warned))
    warned.update(vocabulary.persistent_warning_codes.intersection(previous_status.warned))
    return _Report(applied, skipped, warned)


def _room(annotations: Mapping[str, Json]) -> int:
    letters = sum(map(len, map(str, annotations.values())))
    if (
        letters + len(annotations) * MAX_KEY_LENGTH
        < MAX_ANNOTATIONS_SIZE // _UTF8 - MAX_STATUS_LENGTH
    ):
        return MAX_STATUS_LENGTH  # even if every character takes four bytes
    used = sum(
        size_of(key) + size_of(str(value))
        for key, value in annotations.items()
        if key != STATUS_ANNOTATION
    )
    return min(MAX_STATUS_LENGTH, MAX_ANNOTATIONS_SIZE - used - len(STATUS_ANNOTATION))


def _within(body: JsonObject, room: int, previous_counts: Mapping[str, int]) -> str:
    """Return the body as JSON; if there is little room, with counts for lists, or else nothing.

    Whether to return "" must not depend on the length of the body: a second call has a shorter
    body, but must also return "" where the first call did.
    """
    if room < MAX_STATUS_LENGTH and len(orjson.dumps(body | _MAX_COUNTS)) > room:
        return ""
    written = orjson.dumps(body)
    if len(written) > room or previous_counts:
        counts = {key: len(value) for key, value in body.items() if isinstance(value, (list, dict))}
        largest = {
            key: max(count, counts.get(key, count)) for key, count in previous_counts.items()
        }
        shortened = body | counts | largest
        written = orjson.dumps({key: shortened[key] for key in ORDER if key in shortened})
    return written.decode()


_UTF8 = 4
_MAX_COUNTS = dict.fromkeys(COUNTED, 999)


class _Previous(NamedTuple):
    """The lists of an older status that may carry over, or its counts if it was shortened."""

    applied: Sequence[str] = ()
    warned: Sequence[str] = ()
    counts: Mapping[str, int] = MappingProxyType({})


_NO_PREVIOUS = _Previous()


def _previous(
    annotations: Mapping[str, Json],
    config_hash: str,
    vocabulary: StatusVocabulary,
    *,
    crowded: bool,
) -> _Previous:
    """Read an older status, if we could have written it under this configuration.

    Counts instead of lists are accepted only if the annotations are `crowded`: otherwise there
    would have been room, since a status with all existing reasons has 3 KiB.
    """
    body = read_own_status(annotations)
    if body.get("config") != config_hash or "applied" not in body:
        return _NO_PREVIOUS
    if vocabulary.verdicts.get(str(body.get("because"))) != body.get("rdma", ""):
        return _NO_PREVIOUS
    fields = {key: body[key] for key in COUNTED if key in body}
    if all(_is_count(count, key, vocabulary) for key, count in fields.items()):
        return _Previous(counts=fields) if crowded else _NO_PREVIOUS
    if not _are_known(fields.pop("applied"), vocabulary.mutations):
        return _NO_PREVIOUS
    if not all(codes and _are_known(codes, vocabulary.codes) for codes in fields.values()):
        return _NO_PREVIOUS
    return _Previous(body["applied"], fields.get("warned", ()))


def _is_count(count: Json, key: str, vocabulary: StatusVocabulary) -> bool:
    """Return whether a value can be the number of mutations, or of at least one reason code."""
    minimum, maximum = (
        (0, len(vocabulary.mutations)) if key == "applied" else (1, len(vocabulary.codes))
    )
    return type(count) is int and minimum <= count <= maximum  # `isinstance` would take true for 1


def _are_known(words: Json, known_words: Iterable[str]) -> bool:
    """Return whether `words` is a list of known words, each once, in the order of `known_words`."""
    return isinstance(words, list) and words == [word for word in known_words if word in words]
