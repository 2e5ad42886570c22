"""The `rdma.lab/status` annotation: one line of JSON that says what was done and why not.

    {"fabric":"v100-ib","applied":["ipc-lock"],"skipped":{"networks":["HostNetwork"]},
     "warned":{"env":["EnvFrom"]},"config":"0123456789ab"}

`reason` is there where the pod as a whole got less than the set (`NoTarget`, …).
The API server calls us twice when another plugin changed the pod after us. What
the first call applied is found done by the second, so `applied`, and the
warnings of what was applied, carry over from a status with the same config hash.
No decision reads a status; a preset one is replaced.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import orjson

from webhook.core.annotations import STATUS
from webhook.core.decision import Outcome, Reason

#: Bytes of one status: a person reads it, and all annotations share 256 KiB.
LONGEST = 4096

#: For all annotations of an object (apimachinery, TotalAnnotationSizeLimitB).
ANNOTATIONS_LIMIT = 256 * 1024


def render(
    annotations: Mapping[str, Any],
    outcomes: Iterable[Outcome],
    *,
    fabric: str | None,
    why: Reason | None,
    config_hash: str,
    chain: tuple[str, ...],
) -> str:
    """Write the status for these outcomes, "" where the annotations leave no room for one.

    Mutations are listed in the order of `chain`.
    """
    before = _previous(annotations, config_hash)
    applied = set(before["applied"])
    skipped: dict[str, list[str]] = {}
    warned: dict[str, list[str]] = {
        name: codes for name, codes in before["warned"].items() if name in applied and name in chain
    }
    for mutation, _, status, reason, _, _ in outcomes:
        if status == "applied":
            applied.add(mutation)
        elif status == "skipped" and not reason.quiet:
            _add(skipped, mutation, reason.code)
        elif status == "warned":
            _add(warned, mutation, reason.code)
    body: dict[str, Any] = {"fabric": fabric}
    if why is not None:
        body["reason"] = why.code
    body["applied"] = [name for name in chain if name in applied]
    for field, found in (("skipped", skipped), ("warned", warned)):
        if found:
            body[field] = {name: sorted(found[name]) for name in sorted(found)}
    body["config"] = config_hash
    return _within(body, _room(annotations), before["counts"])


def _add(found: dict[str, list[str]], mutation: str, code: str) -> None:
    codes = found.setdefault(mutation, [])
    if code not in codes:
        codes.append(code)


def _room(annotations: Mapping[str, Any]) -> int:
    letters = sum(map(len, map(str, annotations.values())))
    if letters + len(annotations) * _LONGEST_KEY < ANNOTATIONS_LIMIT // _UTF8 - LONGEST:
        return LONGEST  # whatever the letters are
    used = sum(
        size_of(key) + size_of(str(value)) for key, value in annotations.items() if key != STATUS
    )
    return min(LONGEST, ANNOTATIONS_LIMIT - used - len(STATUS))


def size_of(written: str) -> int:
    """Count the bytes of a text, which is what the API server limits."""
    return len(written) if written.isascii() else len(written.encode("utf-8", "surrogatepass"))


def _within(body: dict[str, Any], room: int, before: Mapping[str, int]) -> str:
    """Write the body, with counts for lists where there is no room, or nothing at all."""
    written = orjson.dumps(body)
    if len(written) > room or before:
        counts = {key: len(value) for key, value in body.items() if value.__class__ in (list, dict)}
        most = {key: max(count, counts.get(key, 0)) for key, count in before.items()}
        shortened = body | counts | most
        written = orjson.dumps({key: shortened[key] for key in _ORDER if key in shortened})
    return written.decode() if len(written) <= room else ""


_LONGEST_KEY = 317  # a prefix of 253, a slash, a name of 63
_UTF8 = 4
_COUNTED = ("applied", "skipped", "warned")
_ORDER = ("fabric", "reason", *_COUNTED, "config")
_EMPTY: dict[str, Any] = {"applied": (), "warned": {}, "counts": {}}


def _previous(annotations: Mapping[str, Any], config_hash: str) -> dict[str, Any]:
    """Read an older status, if it is well formed and was written under the same configuration."""
    written = annotations.get(STATUS)
    if written.__class__ is not str or len(written) > LONGEST:
        return _EMPTY
    try:
        body = orjson.loads(written)
    except orjson.JSONDecodeError:
        return _EMPTY
    if body.__class__ is not dict or body.get("config") != config_hash:
        return _EMPTY
    counts = {key: body[key] for key in _COUNTED if body.get(key).__class__ is int}
    if "applied" in counts:  # a shortened one, which stays so
        return _EMPTY | {"counts": counts}
    applied, warned = body.get("applied"), body.get("warned", {})
    if not _names(applied) or warned.__class__ is not dict or not all(map(_names, warned.values())):
        return _EMPTY
    codes = {key: list(value) for key, value in warned.items()}
    return {"applied": applied, "warned": codes, "counts": {}}


def _names(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(item, str) for item in value)
