"""Queries of the preview's listener: their parameters, and the format of the answer.

All parameters are checked, and none is ignored.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from webhook.config.messages import suggestion
from webhook.config.names import LABEL_FORM, is_dns_label
from webhook.errors import RequestError
from webhook.preview.formats import SERVED, OutputFormat

NAMESPACE, LABEL, ENABLE, OUTPUT = "namespace", "namespace-label", "enable", "output"
PARAMETERS = (NAMESPACE, LABEL, ENABLE, OUTPUT)
_BOOLEANS = {"true": True, "false": False}


class Query(NamedTuple):
    """What a caller of the preview requests besides sending documents."""

    namespace: str = "default"
    labels: dict[str, str] = {}  # noqa: RUF012 -- never changed
    enable: bool = False
    #: None: the `Accept` header decides.
    output: OutputFormat | None = None


def read_query(parameters: Iterable[tuple[str, str]]) -> Query:
    """Read the parameters of `/preview`; RequestError (400) names the first that is invalid."""
    given = list(parameters)
    single = _single(given, PARAMETERS)
    return Query(
        namespace=_namespace(single.get(NAMESPACE, "default")),
        labels=_labels(value for name, value in given if name == LABEL),
        enable=_boolean(ENABLE, single.get(ENABLE, "false")),
        output=_format(single, SERVED),
    )


def requested_format(
    parameters: Iterable[tuple[str, str]], formats: Sequence[OutputFormat]
) -> OutputFormat | None:
    """Read the parameters of an address that has only `output`; None if it is not given."""
    return _format(_single(list(parameters), (OUTPUT,)), formats)


def _single(given: Sequence[tuple[str, str]], known: Sequence[str]) -> dict[str, str]:
    """Return the parameters by name; RequestError for another one, and for one that repeats."""
    for name, times in Counter(name for name, _ in given).items():
        if name not in known:
            hint = suggestion(name, known)
            raise RequestError(
                400, f"{name!r:.80} is not a parameter{hint}: use {', '.join(known)}"
            )
        if times > 1 and name != LABEL:
            raise RequestError(400, f"{name}: given {times} times: give it once")
    return dict(given)


def _namespace(written: str) -> str:
    if not is_dns_label(written):
        raise RequestError(
            400, f"{NAMESPACE}={written!r:.80} is not the name of a namespace: {LABEL_FORM}"
        )
    return written


def _labels(written: Iterable[str]) -> dict[str, str]:
    labels: dict[str, str] = {}
    for one in written:
        key, equals, value = one.partition("=")
        if not key or not equals:
            raise RequestError(400, f"{LABEL}={one!r:.200}: write KEY=VALUE")
        labels[key] = value
    return labels


def _boolean(name: str, written: str) -> bool:
    value = _BOOLEANS.get(written.lower())
    if value is None:
        raise RequestError(400, f"{name}={written!r:.80}: write true or false")
    return value


def _format(parameters: Mapping[str, str], formats: Sequence[OutputFormat]) -> OutputFormat | None:
    if OUTPUT not in parameters:
        return None
    written = parameters[OUTPUT]
    for one in formats:
        if one.name == written:
            return one
    known = ", ".join(one.name for one in formats)
    raise RequestError(400, f"{OUTPUT}={written!r:.80}: use one of {known}")


# Choose the format of an answer by its `Accept` header, among those served.


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
