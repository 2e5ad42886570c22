"""Which form an answer has: what `Accept` asks for, among the three that exist."""

from __future__ import annotations

from typing import Literal, NamedTuple, get_args

Form = Literal["json", "yaml", "text"]

FORMS: tuple[Form, ...] = get_args(Form)
#: Media types of each form; the first is the one that is sent. JSON is the default, so it
#: comes first among equals.
MEDIA_TYPES: dict[Form, tuple[str, ...]] = {
    "json": ("application/json",),
    "yaml": ("application/yaml", "application/x-yaml", "text/yaml", "text/x-yaml"),
    "text": ("text/plain",),
}


class _Range(NamedTuple):
    """One media range of an `Accept` header: `text/*;q=0.5`."""

    kind: str
    subtype: str
    quality: float


def negotiate(accept: str) -> Form | None:
    """Return the form that an `Accept` header likes best, None where it likes none.

    RFC 9110, 12.5.1: the most specific range that fits a type gives its quality; among
    equals, the order of FORMS decides.
    """
    ranges = [_range(one) for one in accept.split(",") if one.strip()]
    if not ranges:
        return "json"
    best: Form | None = None
    most = 0.0
    for form in FORMS:
        quality = max(_quality(media_type, ranges) for media_type in MEDIA_TYPES[form])
        if quality > most:
            best, most = form, quality
    return best


def _quality(media_type: str, ranges: list[_Range]) -> float:
    kind, _, subtype = media_type.partition("/")
    specific = -1
    quality = 0.0
    for one in ranges:
        if one.kind not in ("*", kind) or one.subtype not in ("*", subtype):
            continue
        fits = (one.kind != "*") + (one.subtype != "*")
        if fits > specific:
            specific, quality = fits, one.quality
    return quality


def _range(written: str) -> _Range:
    media_type, *parameters = written.split(";")
    kind, _, subtype = media_type.strip().lower().partition("/")
    quality = 1.0
    for parameter in parameters:
        name, _, value = parameter.partition("=")
        if name.strip().lower() == "q":
            quality = _number(value)
    return _Range(kind, subtype or "*", quality)


def _number(value: str) -> float:
    try:
        return min(max(float(value), 0.0), 1.0)
    except ValueError:
        return 0.0
