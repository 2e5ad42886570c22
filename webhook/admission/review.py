"""Read an AdmissionReview v1: take parsed JSON, return the request to decide.

Source: k8s.io/api/admission/v1, types.go. Absent and null are the same. Fields that no decision
uses are not checked.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from webhook.errors import ReviewError
from webhook.model.names import MAX_LABEL_LENGTH
from webhook.model.pod import PodManifest
from webhook.model.quoting import describe, kind_of, quoted

API_VERSION = "admission.k8s.io/v1"
KIND = "AdmissionReview"
#: The API server writes a UUID, of 36 characters.
MAX_UID_LENGTH = 128
#: Characters of an unexpected operation, kind or subresource in a message.
SHOWN = 40


class AdmissionRequest(NamedTuple):
    """The parts of a request that a decision and the log use."""

    uid: str
    namespace: str
    #: `metadata.name`, or `metadata.generateName` with a `*`; "" if the pod has neither.
    name: str
    dry_run: bool
    #: The reason not to decide, with its place: "request.operation is 'DELETE', …"; or "".
    ignore_reason: str
    #: The pod to create; empty if the request has none.
    pod: PodManifest


class ReviewRequest(NamedTuple):
    """The request of a review, unchecked; `new` and `old` may be any JSON."""

    uid: str
    namespace: str  #: "" if it is not a string
    name: str  #: "" if it is not a string
    operation: object
    group: object  #: of the object's kind
    kind: object
    subresource: object
    dry_run: bool
    field_manager: str  #: the client's; "" if it has sent none
    new: object  #: the object after the operation
    old: object  #: the object before it


def read_review(document: object) -> AdmissionRequest:
    """Return the request for a pod of a parsed AdmissionReview.

    Raise ReviewError, naming the place, if `document` is not an AdmissionReview v1.
    """
    request = read_request(document)
    pod = mapping_or_null(request.new, "object", "a Pod")
    return AdmissionRequest(
        request.uid,
        request.namespace,
        request.name or _name(pod),
        request.dry_run,
        _ignore_reason(request, pod),
        pod or {},
    )


def read_request(document: object) -> ReviewRequest:
    """Return the request of a parsed AdmissionReview v1; raise ReviewError."""
    if not isinstance(document, dict):
        raise _wrong_type("the body", document, "an AdmissionReview")
    if document.get("apiVersion") != API_VERSION:
        raise invalid_field("apiVersion", document.get("apiVersion"), f'"{API_VERSION}"')
    if document.get("kind") != KIND:
        raise invalid_field("kind", document.get("kind"), f'"{KIND}"')
    request = document.get("request")
    if not isinstance(request, dict):
        raise _wrong_type("request", request, "an AdmissionRequest")
    uid = request.get("uid")
    if not isinstance(uid, str) or not 0 < len(uid) <= MAX_UID_LENGTH:
        raise invalid_field("request.uid", uid, f"a string of 1 to {MAX_UID_LENGTH} characters")
    namespace = string_at(request, "namespace")
    if len(namespace) > MAX_LABEL_LENGTH:
        expected = f"at most {MAX_LABEL_LENGTH} characters"
        raise invalid_field("request.namespace", namespace, expected)
    kind = mapping_at(request, "kind")
    return ReviewRequest(
        uid=uid,
        namespace=namespace,
        name=string_at(request, "name"),
        operation=request.get("operation"),
        group=kind.get("group"),
        kind=kind.get("kind"),
        subresource=request.get("subResource"),
        dry_run=request.get("dryRun") is True,
        field_manager=string_at(mapping_at(request, "options"), "fieldManager"),
        new=request.get("object"),
        old=request.get("oldObject"),
    )


def mapping_or_null(value: object, key: str, expected: str) -> PodManifest | None:
    """Return the value of `object` or `oldObject` if it is a mapping or null; raise ReviewError."""
    if value is not None and not isinstance(value, dict):
        raise _wrong_type(f"request.{key}", value, expected)
    return value


def mapping_at(node: object, key: str) -> Mapping[str, object]:
    """Return the mapping at a key of `node`, or an empty one."""
    value = node.get(key) if isinstance(node, dict) else None
    return value if isinstance(value, dict) else {}


def string_at(node: Mapping[str, object], key: str) -> str:
    """Return the string at a key of `node`, or ""."""
    value = node.get(key)
    return value if isinstance(value, str) else ""


def uid_of(document: object) -> str:
    """Return the uid of any document, or "" if it has no readable uid of a possible length."""
    uid = string_at(mapping_at(document, "request"), "uid")
    return uid if len(uid) <= MAX_UID_LENGTH else ""


def _ignore_reason(request: ReviewRequest, pod: PodManifest | None) -> str:
    """Return why a request does not create a pod, or "" if it does.

    The webhook is registered only for the creation of pods.
    """
    operation, kind, subresource = request.operation, request.kind, request.subresource
    if operation is not None and operation != "CREATE":
        return (
            f"request.operation is {quoted(operation, SHOWN)}, but pods are changed only at CREATE"
        )
    if (kind is not None and kind != "Pod") or request.group:
        return f"request.kind is {quoted(kind, SHOWN)}, but only pods are changed"
    if subresource:
        written = quoted(subresource, SHOWN)
        return f"request.subResource is {written}, but only pods themselves are changed"
    if pod is None:
        return "request.object is null, so there is no pod to change"
    return ""


def _name(pod: PodManifest | None) -> str:
    metadata = mapping_at(pod, "metadata")
    generated = string_at(metadata, "generateName")
    return string_at(metadata, "name") or (generated and f"{generated}*")


def invalid_field(place: str, value: object, expected: str) -> ReviewError:
    """Return the error for a field with another value than expected, which is shortened."""
    actual = "is missing" if value is None else f"is {describe(value)}"
    return ReviewError(f"{place} {actual}, but it must be {expected}")


def _wrong_type(place: str, value: object, expected: str) -> ReviewError:
    """Return the error for a value of the wrong type, without the value.

    The message is logged, and the value may be a whole pod.
    """
    actual = "missing" if value is None else kind_of(value)
    return ReviewError(f"{place} is {actual}, but it must be {expected}")
