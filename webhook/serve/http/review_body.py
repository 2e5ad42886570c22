"""AdmissionReviews for `/mutate` and `/validate`: reading them, and rejecting invalid bodies."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple, TypeVar

import orjson
from starlette.types import Receive, Scope

from webhook.admission.response import failure, reject
from webhook.admission.review import MAX_UID_LENGTH, uid_of
from webhook.errors import RequestError, ReviewError
from webhook.model.names import MAX_LABEL_LENGTH
from webhook.serve.http.asgi import JSON, TEXT, BodyReader, Headers, clear_frames

#: orjson reads up to a depth of 1024, but writes up to 254, and code that calls itself for each
#: level has similar limits; no pod is a tenth as deep.
MAX_DEPTH = 200
#: A body larger than SMALL may have at most MAX_VALUES values, counted by its `,`, `[` and `{`, and
#: MAX_OBJECTS objects, counted by its `{`. Parsed, these take at most 100 MiB; 8 MiB of `{},` would
#: take 220 MiB. The densest pod that etcd accepts (1.5 MiB), of variables with three-letter names,
#: has 350,000 values and 175,000 objects. More numbers than that would fit, but the only list of
#: numbers in a pod is supplementalGroups, with at most 65,536 on Linux (NGROUPS_MAX).
SMALL = 256 * 1024
MAX_VALUES = 400_000
MAX_OBJECTS = 200_000
#: Characters of a name in the log; a DNS subdomain is shorter.
MAX_NAME_LENGTH = 256
#: The API server writes `request.uid` first, so it is readable even if the rest cannot be parsed.
#: This cannot match inside a JSON string, whose quotes are escaped.
_UID = re.compile(rb'"request"\s*:\s*\{\s*"uid"\s*:\s*"([A-Za-z0-9._-]{1,%d})"' % MAX_UID_LENGTH)
#: The API server writes `request.namespace` before the object; as with the uid, no string matches.
_NAMESPACE = re.compile(rb'"namespace"\s*:\s*"([a-z0-9-]{1,%d})"' % MAX_LABEL_LENGTH)
_BEFORE_OBJECT = 4096  # bytes
_TRACEPARENT = re.compile(rb"[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}")
_Review = TypeVar("_Review")


class ErrorAnswer(NamedTuple):
    """The HTTP answer to an unreadable request, with details for the log."""

    status: int
    body: bytes
    content_type: bytes = JSON
    #: The problem of the request.
    problem: str | None = None
    uid: str = ""
    error: Exception | None = None


async def review_body(
    path: str, scope: Scope, headers: Headers, body_reader: BodyReader, receive: Receive
) -> bytes:
    """Return the body of a request to `path`; raise RequestError if it cannot be a review.

    The query string (`?timeout=5s`) is ignored. Raises DisconnectedError if the client disconnects.
    """
    _check(path, scope, headers)
    body = await body_reader.read(headers, receive)
    _check_density(body)
    return body


def review_or_error(body: bytes, read: Callable[[object], _Review]) -> _Review | ErrorAnswer:
    """Return the review in a body, or the answer to an invalid one; never raises.

    `read` raises ReviewError for JSON that is not a review.
    """
    document: object = None
    try:
        document = _parse(body)
        _check_depth(body, document)
        return read(document)
    except ReviewError as error:
        return invalid_body_answer(uid_of(document) or _legible_uid(body), str(error))
    except Exception as error:  # noqa: BLE001 -- a defect must be answered, with the uid
        return defect_answer(uid_of(document), error)


def namespace_in(body: bytes) -> str:
    """Return the namespace of a review as the API server writes it, without parsing; or ""."""
    namespace = _NAMESPACE.search(body, 0, _BEFORE_OBJECT)
    return namespace[1].decode() if namespace else ""


def count_structural_characters(body: bytes) -> int:
    """Count the `,`, `[` and `{` in one pass, in about half the time of three calls of `count`."""
    return len(body) - len(body.translate(None, b",[{"))


def traceparent(headers: Headers) -> str | None:
    """Return the W3C trace context, sent by the API server if tracing is enabled."""
    value = headers.get(b"traceparent")
    return value.decode() if value and _TRACEPARENT.fullmatch(value) else None


def invalid_body_answer(uid: str, problem: str) -> ErrorAnswer:
    """Return the answer to an invalid body: a review if its uid is known."""
    if not uid:
        return text_answer(400, problem)
    return ErrorAnswer(200, orjson.dumps(reject(uid, 400, problem)), problem=problem, uid=uid)


def text_answer(status: int, problem: str) -> ErrorAnswer:
    """Return an answer with a line of text."""
    return ErrorAnswer(status, f"{problem}\n".encode(errors="replace"), TEXT, problem)


def defect_answer(uid: str, error: Exception) -> ErrorAnswer:
    """Return the answer to a body that caused an error, our defect.

    Of the error, its type and the lines it passed through stay, but no value: the frames of a
    decision can have hundreds of megabytes, and this answer may be in a cycle with them.
    """
    clear_frames(error)
    message = (
        "internal error of rdma-webhook; its log has the details, with the uid "
        f"{uid[:MAX_NAME_LENGTH]}"
    )
    return ErrorAnswer(500, orjson.dumps(failure(500, message)), uid=uid, error=error)


def _check(path: str, scope: Scope, headers: Headers) -> None:
    if scope["method"] != "POST":
        raise RequestError(405, f"{path} accepts only POST")
    content_type = headers.get(b"content-type", JSON)
    if b"json" not in content_type.lower():
        written = content_type.decode("latin-1")
        raise RequestError(415, f"content-type is {written!r:.80}, but it must be application/json")
    if headers.get(b"content-encoding", b"identity") != b"identity":
        raise RequestError(415, "content-encoding is not supported; send plain JSON")
    if b"content-length" not in headers:  # the API server always sends one
        raise RequestError(
            411, "content-length is missing; chunked bodies are not accepted here", close=True
        )


def _check_density(body: bytes) -> None:
    """Reject a body that would take too much memory after parsing."""
    if len(body) <= SMALL:
        return
    if count_structural_characters(body) > MAX_VALUES:
        raise RequestError(413, f"the body contains more than the maximum of {MAX_VALUES} values")
    if body.count(b"{") > MAX_OBJECTS:
        raise RequestError(413, f"the body contains more than the maximum of {MAX_OBJECTS} objects")


def _parse(body: bytes) -> object:
    """Parse strict JSON (no NaN, no lone surrogates, UTF-8 only); raise ReviewError."""
    try:
        return orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise ReviewError(_not_json_message(body, error)) from None


def _not_json_message(body: bytes, error: orjson.JSONDecodeError) -> str:
    try:
        body.decode()
    except UnicodeDecodeError as undecodable:
        return f"the body is not UTF-8: byte {undecodable.start} is 0x{body[undecodable.start]:02x}"
    return f"the body is not JSON: {error}"


def _legible_uid(body: bytes) -> str:
    match = _UID.search(body)
    return match[1].decode() if match else ""


def _check_depth(body: bytes, document: object) -> None:
    """Raise ReviewError if a parsed body is too deep; one with few brackets cannot be."""
    if body.count(b"{") + body.count(b"[") > MAX_DEPTH and _is_too_deep(document):
        raise ReviewError(f"the body is nested deeper than {MAX_DEPTH} levels")


def _is_too_deep(document: object) -> bool:
    level: list[dict[object, object] | list[object]] = [[document]]
    for _ in range(MAX_DEPTH + 1):
        level = [
            child
            for parent in level
            for child in (parent.values() if isinstance(parent, dict) else parent)
            if isinstance(child, (dict, list))
        ]
        if not level:
            return False
    return True
