"""Read an AdmissionReview v1: take parsed JSON, return the request to decide.

Source: k8s.io/api/admission/v1, types.go. Absent and null are the same. Fields that no decision
needs are not checked.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from webhook.errors import ReviewError
from webhook.model.pod import PodManifest, at, describe

API_VERSION = "admission.k8s.io/v1"
KIND = "AdmissionReview"


class AdmissionRequest(NamedTuple):
    """One request, as far as a decision and the log need it."""

    uid: str
    namespace: str
    #: `metadata.name`, or `metadata.generateName` with a `*`; "" if the pod has neither.
    name: str
    dry_run: bool
    #: Why there is nothing to decide, with the place: "request.operation is 'DELETE', …"; else "".
    ignored: str
    #: The pod to be created; empty if the request has none.
    pod: PodManifest


def read_review(document: Any) -> AdmissionRequest:
    """Return the request for a pod of a parsed AdmissionReview.

    Raise ReviewError, naming the place, if `document` is not an AdmissionReview v1.
    """
    request, uid = request_of(document)
    pod = object_of(request, "object", "a Pod")
    return AdmissionRequest(
        uid,
        string_at(request, "namespace"),
        _name(request, pod),
        request.get("dryRun") is True,
        _not_ours(request, pod),
        pod or {},
    )


def request_of(document: Any) -> tuple[dict[str, Any], str]:
    """Return the request of a parsed AdmissionReview v1, and its uid; raise ReviewError."""
    if not isinstance(document, dict):
        raise _wrong_type("the body", document, "an AdmissionReview")
    if document.get("apiVersion") != API_VERSION:
        raise _wrong("apiVersion", document.get("apiVersion"), f'"{API_VERSION}"')
    if document.get("kind") != KIND:
        raise _wrong("kind", document.get("kind"), f'"{KIND}"')
    request = document.get("request")
    if not isinstance(request, dict):
        raise _wrong_type("request", request, "an AdmissionRequest")
    uid = request.get("uid")
    if not isinstance(uid, str) or not uid:
        raise _wrong("request.uid", uid, "a string that is not empty")
    return request, uid


def object_of(request: dict[str, Any], key: str, wanted: str) -> dict[str, Any] | None:
    """Return `object` or `oldObject` of a request, None if there is none; raise ReviewError."""
    found = request.get(key)
    if found is not None and not isinstance(found, dict):
        raise _wrong_type(f"request.{key}", found, wanted)
    return found


def string_at(node: Any, key: str) -> str:
    """Return the value of a key that has to be a string; "" if it is not."""
    value = node.get(key)
    return value if isinstance(value, str) else ""


def uid_of(document: Any) -> str:
    """Return the uid of whatever was sent, "" if it has none that can be read."""
    uid = at(document, ("request", "uid"))
    return uid if isinstance(uid, str) else ""


def _not_ours(request: dict[str, Any], pod: PodManifest | None) -> str:
    """Say why a request does not create a pod; return "" if it does.

    We are registered only for requests that do.
    """
    operation = request.get("operation")
    if operation is not None and operation != "CREATE":
        return f"request.operation is {operation!r:.40}, and only pods at CREATE are changed"
    kind = at(request, ("kind", "kind"))
    if (kind is not None and kind != "Pod") or at(request, ("kind", "group")):
        return f"request.kind is {kind!r:.40}, and only pods are changed"
    subresource = request.get("subResource")
    if subresource:
        return f"request.subResource is {subresource!r:.40}, and only pods themselves are changed"
    if pod is None:
        return "request.object is null, so there is no pod to change"
    return ""


def _name(request: dict[str, Any], pod: PodManifest | None) -> str:
    metadata = pod.get("metadata") if pod else None
    if not isinstance(metadata, dict):
        return string_at(request, "name")
    generated = string_at(metadata, "generateName")
    return (
        string_at(request, "name") or string_at(metadata, "name") or (generated and f"{generated}*")
    )


def _wrong(place: str, value: object, wanted: str) -> ReviewError:
    found = "is missing" if value is None else f"is {describe(value)}"
    return ReviewError(f"{place} {found}: it must be {wanted}")


def _wrong_type(place: str, value: object, wanted: str) -> ReviewError:
    """Return the error for a value of the wrong type, without the value.

    The message is logged, and the value may be a whole pod.
    """
    found = "missing" if value is None else describe(value).partition(" (")[0]
    return ReviewError(f"{place} is {found}: it must be {wanted}")
