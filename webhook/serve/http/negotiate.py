"""Choose the format of an answer by its `Accept` header, among those served."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from webhook.preview.output_format import OutputFormat
from webhook.refusal import RequestError


class _Range(NamedTuple):
    """One media range of an `Accept` header: `text/*;q=0.5`."""

    kind: str
    subtype: str
    quality: float


def negotiate(accept: str, formats: Sequence[OutputFormat]) -> OutputFormat:
    """Return the format that an `Accept` header prefers; RequestError (406) if it accepts none.

    RFC 9110, 12.5.1: the most specific range that matches a media type gives its quality. Among
    formats of equal quality, the first in the table is chosen.
    """
    ranges = [_range(one) for one in accept.split(",") if one.strip()]
    if not ranges:
        return formats[0]
    best: OutputFormat | None = None
    most = 0.0
    for one in formats:
        quality = max((_quality(media_type, ranges) for media_type in one.media_types), default=0.0)
        if quality > most:
            best, most = one, quality
    if best is None:
        known = ", ".join(one.media_types[0] for one in formats if one.media_types)
        raise RequestError(406, f"accept: use one of {known}")
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
