"""Read and answer an AdmissionReview v1 about a FabricConfiguration object."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import NamedTuple

import orjson

from webhook.admission.configuration_changes import ConfigurationChange, configuration_change
from webhook.admission.response import MAX_WARNINGS_LENGTH
from webhook.admission.review import (
    API_VERSION,
    KIND,
    SHOWN,
    ReviewRequest,
    invalid_field,
    mapping_at,
    mapping_or_null,
    read_request,
)
from webhook.decide.admission_warnings import MAX_WARNING_LENGTH
from webhook.model.json import JsonObject
from webhook.model.names import MAX_SUBDOMAIN_LENGTH, counted
from webhook.model.quoting import quoted

#: The operations that can change a configuration. A deletion leaves nothing to check.
CHECKED = ("CREATE", "UPDATE")


class ConfigurationRequest(NamedTuple):
    """The parts of a request that the check and the log use."""

    uid: str
    name: str
    operation: str
    dry_run: bool
    #: Why the request is ignored, with the field that shows it; "" if it is ours.
    ignore_reason: str
    #: The reason to accept the object unchecked; "" if it has to be checked.
    reason_to_accept: str
    #: The object; empty if the request has none.
    object: dict[str, object]
    #: The difference from the object before the update; None for a creation, or if unchecked.
    change: ConfigurationChange | None


def read_configuration_review(document: object, group: str, kind: str) -> ConfigurationRequest:
    """Return the request of a parsed AdmissionReview about objects of this group and kind.

    Raise ReviewError, naming the place, if `document` is not an AdmissionReview v1.
    """
    request = read_request(document)
    if len(request.name) > MAX_SUBDOMAIN_LENGTH:
        raise invalid_field(
            "request.name", request.name, f"at most {MAX_SUBDOMAIN_LENGTH} characters"
        )
    new = mapping_or_null(request.new, "object", f"a {kind}")
    old = mapping_or_null(request.old, "oldObject", f"a {kind}")
    ignore_reason = _ignore_reason(request, new, (group, kind))
    unchecked = "" if ignore_reason or new is None else _reason_to_accept(new, old)
    change = None
    if new is not None and old is not None and not (ignore_reason or unchecked):
        change = configuration_change(new, old, request.field_manager)
    return ConfigurationRequest(
        request.uid,
        request.name,
        request.operation if isinstance(request.operation, str) else "",
        request.dry_run,
        ignore_reason,
        unchecked,
        new or {},
        change,
    )


def _ignore_reason(request: ReviewRequest, new: object, expected: tuple[str, str]) -> str:
    """Return why a request does not configure a cluster, or "" if it does."""
    if request.operation not in CHECKED:
        operation, checked = quoted(request.operation, SHOWN), " and ".join(CHECKED)
        return f"request.operation is {operation}, but only {checked} are checked"
    if (request.group, request.kind) != expected:
        group, kind = expected
        return (
            f"request.kind is {quoted(request.kind, SHOWN)}, but only {kind} of {group} is checked"
        )
    if request.subresource:
        subresource = quoted(request.subresource, SHOWN)
        return f"request.subResource is {subresource}, but only the object itself is checked"
    return "request.object is null, so there is nothing to check" if new is None else ""


def _reason_to_accept(new: dict[str, object], old: dict[str, object] | None) -> str:
    """Return the reason to accept the object unchecked, or ""."""
    if mapping_at(new, "metadata").get("deletionTimestamp") is not None:
        return "the object is being deleted"  # its finalizers have to go
    if old is not None and _written(new.get("spec")) == _written(old.get("spec")):
        return "the spec is unchanged"
    return ""


def _written(spec: object) -> bytes:
    """Return a spec as JSON for comparison, since Python considers 1 and True equal."""
    return orjson.dumps(spec, option=orjson.OPT_SORT_KEYS)


# Write an AdmissionReview answer about the object that configures a cluster.
#
# kubectl shows the causes of a Status with reason Invalid, one per line, instead of its message.
# The API server sends such a Status for an object that violates its schema. Other clients show the
# message.
# Source: kubectl, pkg/cmd/util/helpers.go, checkErr and MultilineError.

#: The maximum number of errors in an answer: a screen has no room for more.
MAX_ERRORS = 20
#: The longest path, in characters, that is repeated in full.
_MAX_PATH_LENGTH = 60
_CODE = 422  # Unprocessable Entity: the API server's answer for an invalid object
_ALL = "`rdma-webhook check-config FILE` lists all of them"
_MORE_WARNINGS = f"and more warnings: {_ALL}"


class ConfigurationErrors(NamedTuple):
    """The errors and warnings of a configuration."""

    #: Paths and sentences.
    errors: Sequence[tuple[str, str]] = ()
    #: The number of further errors.
    more_errors: int = 0
    #: Paths and sentences.
    warnings: Sequence[tuple[str, str]] = ()
    #: The number of further warnings.
    more_warnings: int = 0


def configuration_answer(
    uid: str, about: dict[str, str], faults: ConfigurationErrors
) -> JsonObject:
    """Return the answer: allowed if there are no errors; `about` has group, kind and name."""
    response: dict[str, object] = {"uid": uid, "allowed": not faults.errors}
    if faults.errors:
        response["status"] = _status(about, faults)
    if lines := _lines(faults):
        response["warnings"] = lines
    return {"apiVersion": API_VERSION, "kind": KIND, "response": response}


def _status(about: dict[str, str], faults: ConfigurationErrors) -> dict[str, object]:
    listed = list(faults.errors[:MAX_ERRORS])
    if omitted := len(faults.errors) - len(listed) + faults.more_errors:
        listed.append((f"and {counted(omitted, 'more error')}", _ALL))
    causes = [
        {"reason": "FieldValueInvalid", "field": path, "message": sentence}
        for path, sentence in listed
    ]
    return {
        "status": "Failure",
        "code": _CODE,
        "reason": "Invalid",
        "message": "\n".join(f"{path}: {sentence}" for path, sentence in listed),
        "details": {**about, "causes": causes},
    }


def _lines(faults: ConfigurationErrors) -> list[str]:
    """Return the warnings as lines of ASCII that the API server does not truncate."""
    room = MAX_WARNINGS_LENGTH - len(_MORE_WARNINGS)
    lines: list[str] = []
    for path, sentence in faults.warnings:
        wrapped = _wrap(path, sentence)
        room -= sum(map(len, wrapped))
        if room < 0:
            return [*lines, _MORE_WARNINGS]
        lines += wrapped
    return [*lines, _MORE_WARNINGS] if faults.more_warnings else lines


def _wrap(path: str, sentence: str) -> list[str]:
    """Return a warning as lines of at most MAX_WARNING_LENGTH characters.

    Each line has the path, since the API server drops a line that it has sent before.
    """
    place = _ascii(path)
    short_place = place if len(place) <= _MAX_PATH_LENGTH else f"{place[: _MAX_PATH_LENGTH - 3]}..."
    line = f"{place}: {_ascii(sentence)}"
    indent = f"{short_place}: ... "
    return textwrap.wrap(line, MAX_WARNING_LENGTH, subsequent_indent=indent, break_on_hyphens=False)


def _ascii(text: str) -> str:
    return "".join(letter if " " <= letter <= "~" else "?" for letter in text)
