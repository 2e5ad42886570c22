"""The `rdma.lab/status` annotation: one line of JSON that says what was done, and what was not.

    {"rdma":"unsure","because":"MemlockUnknown","fabric":"v100-ib","applied":["ipc-lock"],
     "skipped":["UserMount"],"warned":["NonRoot"],"config":"0123456789ab"}

`reason` is present if the pod as a whole got less than all mutations (`ForeignNIC`, …), and that is
not what `because` says. Each reason code is there once: as `because`, `reason`, `skipped` or
`warned`, whichever comes first.
The API server calls us twice if another plugin changed the pod after us. The second call finds
done what the first call applied, so the names of those mutations, and their warnings, carry over
from a status with the same config hash. A user may write such a status, and the hash is not
secret. Therefore a status counts only if we could have written it, byte for byte, and a mutation
in it only if this call finds it done. One that the user set is replaced.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

import orjson

from webhook.decide.scope import NO_CALL, EarlierCall
from webhook.model.annotations import ANNOTATIONS_LIMIT, LONGEST_STATUS, STATUS, size_of
from webhook.model.decision import Outcome, Reason, Verdict
from webhook.model.json import Json, JsonObject

# Read a status as text: whether we could have written it, and under which configuration.
#
# A user may write a status too, and a configuration's hash is not secret. So nothing in a status
# allows what the user could not ask for otherwise.

#: The fields that count or list what was done.
COUNTED = ("applied", "skipped", "warned")
#: All fields, in their order.
ORDER = ("rdma", "because", "fabric", "reason", *COUNTED, "config")
_HASH = re.compile(r"[0-9a-f]{12}")


def written_by_us(annotations: Mapping[str, Json]) -> JsonObject:
    """Read a JSON object with our fields in our order and format; return {} for anything else."""
    written = annotations.get(STATUS)
    if not isinstance(written, str) or len(written) > LONGEST_STATUS:
        return {}
    try:
        body = orjson.loads(written)
    except orjson.JSONDecodeError:
        return {}
    ours = isinstance(body, dict) and list(body) == [key for key in ORDER if key in body]
    return body if ours and orjson.dumps(body).decode() == written else {}


def earlier_call(annotations: Mapping[str, Json]) -> EarlierCall:
    """Return the configuration and the fabric of the call that wrote the pod's status.

    The codes in it are not checked: another version of this program may know others.
    """
    body = written_by_us(annotations) if STATUS in annotations else {}
    config, fabric = body.get("config"), body.get("fabric")
    if not isinstance(config, str) or not _HASH.fullmatch(config):
        return NO_CALL
    return EarlierCall(config, fabric if isinstance(fabric, str) else None)


def configuration_named_in(pod: Json) -> str:
    """Return the hash in the status of anything that claims to be a pod; "" if there is none."""
    metadata = pod.get("metadata") if isinstance(pod, dict) else None
    annotations = metadata.get("annotations") if isinstance(metadata, dict) else None
    return earlier_call(annotations).config if isinstance(annotations, dict) else ""


class StatusSummary(NamedTuple):
    """What a status says about the pod as a whole."""

    verdict: Verdict
    fabric: str | None
    #: Why it got less than all mutations; None if it did not.
    why: Reason | None
    config_hash: str


class StatusVocabulary(NamedTuple):
    """All that a status may name."""

    #: The reason codes of each mutation, in the order of the mutations.
    mutations: Mapping[str, frozenset[str]]
    #: These, and those of what the pipeline says instead of a mutation; sorted.
    codes: tuple[str, ...]
    #: The verdict that each code explains.
    verdicts: Mapping[str, str | None]
    #: The codes that hold for every later call, too.
    lasting: frozenset[str] = frozenset()


def render(
    annotations: Mapping[str, Json],
    outcomes: Iterable[Outcome],
    whole: StatusSummary,
    known: StatusVocabulary,
) -> str:
    """Return the status for these outcomes, "" if the annotations leave no room for one."""
    room = _room(annotations)
    before = _previous(annotations, whole.config_hash, known, crowded=room < LONGEST_STATUS)
    said = _said(outcomes, before, known)
    rdma, because, _ = whole.verdict
    body: JsonObject = {"rdma": rdma, "because": because.code, "fabric": whole.fabric}
    told = {because.code}
    if whole.why is not None and whole.why is not because:
        body["reason"] = whole.why.code
        told.add(whole.why.code)
    body["applied"] = [name for name in known.mutations if name in said.applied]
    for field, codes in (("skipped", said.skipped), ("warned", said.warned)):
        if not codes <= told:
            body[field] = sorted(codes - told)
            told |= codes
    body["config"] = whole.config_hash
    return _within(body, room, before.counts)


class _Said(NamedTuple):
    """The mutations that were applied, and the reason codes of what was skipped or warned of."""

    applied: set[str]
    skipped: set[str]
    warned: set[str]


def _said(outcomes: Iterable[Outcome], before: _Previous, known: StatusVocabulary) -> _Said:
    applied, skipped, warned, done = set[str](), set[str](), set[str](), set[str]()
    for mutation, _, status, reason, _, _ in outcomes:
        if status == "applied":
            applied.add(mutation)
        elif status == "already":
            done.add(mutation)
        elif status == "warned":
            warned.add(reason.code)
        elif status == "skipped" and not reason.quiet:
            skipped.add(reason.code)
    for name in done.intersection(before.applied):
        applied.add(name)
        warned.update(known.mutations[name].intersection(before.warned))
    warned.update(known.lasting.intersection(before.warned))
    return _Said(applied, skipped, warned)


def _room(annotations: Mapping[str, Json]) -> int:
    letters = sum(map(len, map(str, annotations.values())))
    if letters + len(annotations) * _LONGEST_KEY < ANNOTATIONS_LIMIT // _UTF8 - LONGEST_STATUS:
        return LONGEST_STATUS  # even if every character takes four bytes
    used = sum(
        size_of(key) + size_of(str(value)) for key, value in annotations.items() if key != STATUS
    )
    return min(LONGEST_STATUS, ANNOTATIONS_LIMIT - used - len(STATUS))


def _within(body: JsonObject, room: int, before: Mapping[str, int]) -> str:
    """Return the body as JSON; if there is little room, with counts for lists, or else nothing.

    Whether there is room for anything must not depend on the length of the body: a second call
    has less to say, but must find no room where the first call found none.
    """
    if room < LONGEST_STATUS and len(orjson.dumps(body | _WIDEST)) > room:
        return ""
    written = orjson.dumps(body)
    if len(written) > room or before:
        counts = {key: len(value) for key, value in body.items() if isinstance(value, (list, dict))}
        most = {key: max(count, counts.get(key, count)) for key, count in before.items()}
        shortened = body | counts | most
        written = orjson.dumps({key: shortened[key] for key in ORDER if key in shortened})
    return written.decode()


_LONGEST_KEY = 317  # a prefix of 253, a slash, a name of 63
_UTF8 = 4
_WIDEST = dict.fromkeys(COUNTED, 999)


class _Previous(NamedTuple):
    """What may carry over from an older status: its lists, or its counts if it was shortened."""

    applied: Sequence[str] = ()
    warned: Sequence[str] = ()
    counts: Mapping[str, int] = MappingProxyType({})


_NOTHING = _Previous()


def _previous(
    annotations: Mapping[str, Json],
    config_hash: str,
    known: StatusVocabulary,
    *,
    crowded: bool,
) -> _Previous:
    """Read an older status, if we could have written it under this configuration.

    Counts instead of lists are accepted only if the annotations are `crowded`: otherwise there
    would have been room, since a status with all existing reasons has 3 KiB.
    """
    body = written_by_us(annotations)
    if body.get("config") != config_hash or "applied" not in body:
        return _NOTHING
    if known.verdicts.get(str(body.get("because"))) != body.get("rdma", ""):
        return _NOTHING
    found = {key: body[key] for key in COUNTED if key in body}
    if all(_counts(count, key, known) for key, count in found.items()):
        return _Previous(counts=found) if crowded else _NOTHING
    if not _are(found.pop("applied"), known.mutations):
        return _NOTHING
    if not all(listed and _are(listed, known.codes) for listed in found.values()):
        return _NOTHING
    return _Previous(body["applied"], found.get("warned", ()))


def _counts(count: Json, key: str, known: StatusVocabulary) -> bool:
    """Return whether a value can be the count of mutations, or of one or more reason codes."""
    least, most = (0, len(known.mutations)) if key == "applied" else (1, len(known.codes))
    return type(count) is int and least <= count <= most  # `isinstance` would take true for 1


def _are(found: Json, known: Iterable[str]) -> bool:
    """Return whether `found` is a list of known words, each once, in the order of `known`."""
    return isinstance(found, list) and found == [word for word in known if word in found]
