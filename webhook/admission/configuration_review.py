"""Read an AdmissionReview v1 about the object that configures a cluster."""

from __future__ import annotations

from typing import Any, NamedTuple

import orjson

from webhook.admission.review import object_of, request_of, string_at
from webhook.model.pod import at

#: The operations that can change a configuration. A deletion leaves nothing to check.
CHECKED = ("CREATE", "UPDATE")


class ConfigurationRequest(NamedTuple):
    """One request, as far as the check and the log need it."""

    uid: str
    name: str
    operation: str
    dry_run: bool
    #: Why the API server need not have asked, with the place; "" if it was right to ask.
    ignored: str
    #: Why the object is accepted as it is; "" if it has to be checked.
    settled: str
    #: The object; empty if the request has none.
    object: dict[str, Any]


def read_configuration_review(document: Any, group: str, kind: str) -> ConfigurationRequest:
    """Return the request of a parsed AdmissionReview about objects of this group and kind.

    Raise ReviewError, naming the place, if `document` is not an AdmissionReview v1.
    """
    request, uid = request_of(document)
    new = object_of(request, "object", f"a {kind}")
    old = object_of(request, "oldObject", f"a {kind}")
    ignored = _not_ours(request, new, (group, kind))
    return ConfigurationRequest(
        uid,
        string_at(request, "name"),
        string_at(request, "operation"),
        request.get("dryRun") is True,
        ignored,
        "" if ignored or new is None else _settled(new, old),
        new or {},
    )


def _not_ours(request: dict[str, Any], new: object, wanted: tuple[str, str]) -> str:
    """Say why a request does not configure a cluster; return "" if it does."""
    operation = request.get("operation")
    if operation not in CHECKED:
        known = " and ".join(CHECKED)
        return f"request.operation is {operation!r:.40}, and only {known} are checked"
    found = at(request, ("kind", "group")), at(request, ("kind", "kind"))
    if found != wanted:
        return f"request.kind is {found[1]!r:.40}, and only {wanted[1]} of {wanted[0]} is checked"
    if subresource := request.get("subResource"):
        return f"request.subResource is {subresource!r:.40}, and only the object itself is checked"
    return "request.object is null, so there is nothing to check" if new is None else ""


def _settled(new: dict[str, Any], old: dict[str, Any] | None) -> str:
    """Say why an object is accepted whatever its spec; return "" if it is not."""
    if at(new, ("metadata", "deletionTimestamp")) is not None:
        return "the object is being deleted"  # its finalizers have to go
    if old is not None and _written(new.get("spec")) == _written(old.get("spec")):
        return "the spec is unchanged"
    return ""


def _written(spec: object) -> bytes:
    """Return JSON that differs where specs do; Python would take 1 for true."""
    return orjson.dumps(spec, option=orjson.OPT_SORT_KEYS)
