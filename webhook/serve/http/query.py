"""Queries of the preview's listener: their parameters, and the format of the answer.

All parameters are checked, and none is ignored.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from webhook.config.names import LABEL_FORM, is_dns_label
from webhook.errors import RequestError
from webhook.model.nearest import suggestion
from webhook.preview.formats import HTTP_FORMATS, OutputFormat

NAMESPACE, LABEL, ENABLE, OUTPUT = "namespace", "namespace-label", "enable", "output"
PARAMETERS = (NAMESPACE, LABEL, ENABLE, OUTPUT)
_BOOLEANS = {"true": True, "false": False}
#: The longest query string, in bytes.
MAX_QUERY_LENGTH = 4096
#: The most characters and media ranges of an `Accept` header that is read.
MAX_ACCEPT_LENGTH, MAX_RANGES = 1024, 20


class Query(NamedTuple):
    """The parameters of a caller of the preview besides documents."""

    namespace: str = "default"
    labels: dict[str, str] = {}  # noqa: RUF012 -- never changed
    enable: bool = False
    #: The format; None lets the `Accept` header decide.
    output: OutputFormat | None = None


def read_query(parameters: Iterable[tuple[str, str]]) -> Query:
    """Return the parameters of `/preview`; raise RequestError (400) for the first invalid one."""
    given = list(parameters)
    single = _single(given, PARAMETERS)
    return Query(
        namespace=_namespace(single.get(NAMESPACE, "default")),
        labels=_labels(value for name, value in given if name == LABEL),
        enable=_boolean(ENABLE, single.get(ENABLE, "false")),
        output=_format(single, HTTP_FORMATS),
    )


def check_query_length(query_string: bytes) -> None:
    """Raise RequestError (414) for a query string that would take long to parse."""
    if len(query_string) > MAX_QUERY_LENGTH:
        raise RequestError(414, f"the query is longer than {MAX_QUERY_LENGTH} bytes")


def requested_format(
    parameters: Iterable[tuple[str, str]], formats: Sequence[OutputFormat]
) -> OutputFormat | None:
    """Return the format of an address with only `output`; None without the parameter."""
    return _format(_single(list(parameters), (OUTPUT,)), formats)


def _single(given: Sequence[tuple[str, str]], allowed: Sequence[str]) -> dict[str, str]:
    """Return the parameters by name; raise RequestError for unknown and repeated ones."""
    for name, times in Counter(name for name, _ in given).items():
        if name not in allowed:
            hint = suggestion(name, allowed)
            raise RequestError(
                400, f"{name!r:.80} is not a parameter{hint}; use {', '.join(allowed)}"
            )
        if times > 1 and name != LABEL:
            raise RequestError(400, f"{name} is given {times} times; use it once")
    return dict(given)


def _namespace(written: str) -> str:
    if not is_dns_label(written):
        raise RequestError(
            400, f"{NAMESPACE}={written!r:.80} is not a valid namespace name; write {LABEL_FORM}"
        )
    return written


def _labels(written: Iterable[str]) -> dict[str, str]:
    labels: dict[str, str] = {}
    for label in written:
        key, equals, value = label.partition("=")
        if not key or not equals:
            raise RequestError(400, f"{LABEL}={label!r:.200}: write KEY=VALUE")
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
    for choice in formats:
        if choice.name == written:
            return choice
    choices = ", ".join(choice.name for choice in formats)
    raise RequestError(400, f"{OUTPUT}={written!r:.80}: use one of {choices}")


# Choose the format of an answer by the request's `Accept` header.


class _Range(NamedTuple):
    """A media range of an `Accept` header: `text/*;q=0.5`."""

    kind: str
    subtype: str
    quality: float


def negotiate(accept: str, formats: Sequence[OutputFormat]) -> OutputFormat:
    """Return the format preferred by an `Accept` header; raise RequestError (406) without one.

    RFC 9110, 12.5.1: the most specific range that matches a media type gives its quality. Among
    formats of equal quality, the first in the table is chosen. A header that is longer than any
    browser's counts as `*/*`.
    """
    ranges = _ranges(accept)
    if not ranges:
        return formats[0]
    best: OutputFormat | None = None
    best_quality = 0.0
    for choice in formats:
        quality = max(
            (_quality(media_type, ranges) for media_type in choice.media_types), default=0.0
        )
        if quality > best_quality:
            best, best_quality = choice, quality
    if best is None:
        accepted = ", ".join(choice.media_types[0] for choice in formats if choice.media_types)
        raise RequestError(406, f"accept: use one of {accepted}")
    return best


def prefers_html(accept: str) -> bool:
    """Return whether an `Accept` header prefers HTML to plain text, as that of a browser does."""
    ranges = _ranges(accept)
    return _quality("text/html", ranges) > _quality("text/plain", ranges)


def _ranges(accept: str) -> list[_Range]:
    """Return the media ranges; none of a header that would take long to read."""
    parts = accept.split(",", MAX_RANGES) if len(accept) <= MAX_ACCEPT_LENGTH else []
    return [_range(part) for part in parts if part.strip()] if len(parts) <= MAX_RANGES else []


def _quality(media_type: str, ranges: list[_Range]) -> float:
    kind, _, subtype = media_type.partition("/")
    specific = -1
    quality = 0.0
    for accepted in ranges:
        if accepted.kind not in ("*", kind) or accepted.subtype not in ("*", subtype):
            continue
        fits = (accepted.kind != "*") + (accepted.subtype != "*")
        if fits > specific:
            specific, quality = fits, accepted.quality
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


def _number(text: str) -> float:
    try:
        return min(max(float(text), 0.0), 1.0)
    except ValueError:
        return 0.0
