"""The output of `rdma-webhook certs`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import fields
from datetime import datetime
from typing import Any

from certs.inspection import Authority, Handshake, InspectedBundle, Inspection

_SHORT = 16  # hex digits of a fingerprint; enough to distinguish a few CAs
_SAME = "it has exactly the CAs of the Secret"
_PHASES = {
    "settled": "one CA; no rotation is in progress",
    "publishing": (
        "the next CA is in caBundle, and issues certificates once every API server has seen it"
    ),
    "draining": (
        "the next CA issues certificates; the previous one stays until no replica can still use it"
    ),
}


def inspection_text(inspection: Inspection) -> str:
    """Render an inspection as text for people."""
    return "\n".join([*_state(inspection), "", *_lines(inspection.handshakes), ""])


def handshakes_text(handshakes: Sequence[Handshake]) -> str:
    """Render handshakes as text for people."""
    return "\n".join([*_lines(handshakes), ""])


def told(record: Inspection | Authority | Handshake | InspectedBundle) -> dict[str, Any]:
    """Return a record in JSON's types, with names as Kubernetes writes them."""
    return {_camel(one.name): _plain(getattr(record, one.name)) for one in fields(record)}


def _state(inspection: Inspection) -> Iterator[str]:
    if inspection.secret_problem:
        yield f"✘ Secret    {inspection.secret_problem}"
    else:
        yield f"✔ Secret    {inspection.phase}: {_PHASES[inspection.phase]}"
    for bundle in inspection.bundles:
        where, problem = bundle.configuration, bundle.problem
        what = problem if problem.startswith(where) else f"{where}: {problem or _SAME}"
        yield f"{'✘' if problem else '✔'} caBundle  {what}"
    for one in inspection.authorities:
        where = "in caBundle" if one.in_bundle else "not in caBundle"
        ends = _moment(one.not_after)
        yield f"    {one.role:<9} {one.fingerprint[:_SHORT]}  until {ends}  {where}"
    if inspection.retire_after is not None:
        yield f"  the previous CA stays at least until {_moment(inspection.retire_after)}"
    if inspection.asked:
        yield f"  a request to {inspection.asked} is pending; a replica starts it in its next round"


def _lines(handshakes: Sequence[Handshake]) -> Iterator[str]:
    if not handshakes:
        yield "✘ served    the Service has no ready endpoints"
    for one in handshakes:
        sign, verdict = ("✘", one.problem) if one.problem else ("✔", "verified")
        leaf = f"  until {_moment(one.not_after)}" if one.not_after else ""
        issuer = f"  by the {one.issuer} CA" if one.issuer else ""
        yield f"{sign} {one.address:<22} {verdict}{leaf}{issuer}"


def _moment(moment: datetime | None) -> str:
    return f"{moment:%Y-%m-%dT%H:%M:%SZ}" if moment else ""


def _camel(name: str) -> str:
    first, *more = name.split("_")
    return first + "".join(word.capitalize() for word in more)


def _plain(value: object) -> object:
    if isinstance(value, (Inspection, Authority, Handshake, InspectedBundle)):
        return told(value)
    if isinstance(value, tuple):
        return [_plain(one) for one in value]
    return _moment(value) if isinstance(value, datetime) else value
