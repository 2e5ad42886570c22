"""Tests of reading reviews about the object that configures a cluster."""

from __future__ import annotations

from typing import Any

import pytest

from webhook.admission.configuration_review import read_configuration_review
from webhook.errors import ReviewError

GROUP, KIND = "rdma.lab", "FabricConfiguration"
SPEC: dict[str, Any] = {"fabrics": [{"name": "ib", "rateGbps": 100}]}


def item(spec: Any = SPEC, **metadata: Any) -> dict[str, Any]:
    """Return an object."""
    return {"kind": KIND, "metadata": {"name": "default", **metadata}, "spec": spec}


def review(**request: Any) -> dict[str, Any]:
    """Return the review of an object's creation, with changes."""
    full_request = {
        "uid": "u",
        "kind": {"group": GROUP, "version": "v1alpha1", "kind": KIND},
        "operation": "CREATE",
        "name": "default",
        "object": item(),
        **request,
    }
    return {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": full_request}


def test_a_creation_is_checked() -> None:
    """The object is passed on as it is."""
    read = read_configuration_review(review(dryRun=True), GROUP, KIND)
    assert read == ("u", "default", "CREATE", True, "", "", item(), None)


def test_an_update_is_compared() -> None:
    """With the field manager of the request's options; an unchecked one is not."""
    owners = [{"manager": "team"}]
    old, new = item({"fabrics": [{"name": "a"}]}), item({"fabrics": []}, managedFields=owners)
    options = {"fieldManager": "team"}
    fields = {"operation": "UPDATE", "object": new, "oldObject": old, "options": options}
    read = read_configuration_review(review(**fields), GROUP, KIND)
    assert read.change == ("team", True, {"a": 0}, [], owners)
    for other in ({"oldObject": new}, {"operation": "DELETE"}, {"object": None}):
        assert read_configuration_review(review(**{**fields, **other}), GROUP, KIND).change is None


@pytest.mark.parametrize(
    ("request_", "reason"),
    [
        (
            {"operation": "DELETE", "object": None},
            "operation is 'DELETE', but only CREATE and UPDATE",
        ),
        ({"operation": None}, "operation is None, but"),
        ({"kind": {"group": "", "kind": "Pod"}}, "kind is 'Pod', but only FabricConfiguration of"),
        ({"kind": {"group": "other", "kind": KIND}}, "but only FabricConfiguration of rdma.lab is"),
        ({"kind": None}, "kind is None, but"),
        ({"subResource": "status"}, "subResource is 'status', but only the object itself is"),
        ({"object": None}, "object is null, so there is nothing to check"),
        ({"operation": [[]]}, "operation is a list, but only CREATE and UPDATE"),
        ({"kind": {"kind": [[]]}}, "kind is a list, but only FabricConfiguration of"),
        ({"subResource": [[]]}, "subResource is a list, but only the object itself is"),
    ],
    ids=[
        "deletion",
        "no operation",
        "pod",
        "group",
        "no kind",
        "status",
        "no object",
        "nested operation",
        "nested kind",
        "nested subresource",
    ],
)
def test_requests_that_are_not_ours_have_a_reason(request_: dict[str, Any], reason: str) -> None:
    """The API server calls for other requests only if somebody changed the registration."""
    read = read_configuration_review(review(**request_), GROUP, KIND)
    assert reason in read.ignore_reason
    assert read.ignore_reason.startswith("request.")
    assert read.reason_to_accept == ""


@pytest.mark.parametrize(
    ("new", "old", "reason"),
    [
        (item(), item(), "the spec is unchanged"),
        (item(labels={"a": "b"}), item(), "the spec is unchanged"),
        (item({"b": 1, "a": {}}), item({"a": {}, "b": 1}), "the spec is unchanged"),
        (item(None), {"metadata": {}}, "the spec is unchanged"),
        (
            item({"a": 1}, deletionTimestamp="2026-01-01T00:00:00Z"),
            item(),
            "the object is being deleted",
        ),
        (item({"a": 1}), item({"a": 2}), ""),
        (item({"a": 1}), item({"a": True}), ""),
        (item({"a": [1, 2]}), item({"a": [2, 1]}), ""),
        (item(), None, ""),
    ],
    ids=[
        *("same", "label", "order of fields", "no spec", "being deleted"),
        *("value", "type", "order of items", "no old one"),
    ],
)
def test_what_has_not_changed_need_not_be_right(
    new: dict[str, Any], old: dict[str, Any] | None, reason: str
) -> None:
    """An invalid object can lose its finalizers, and get a label."""
    document = review(operation="UPDATE", object=new, oldObject=old)
    assert read_configuration_review(document, GROUP, KIND).reason_to_accept == reason


@pytest.mark.parametrize(
    ("document", "message"),
    [
        ([], "the body is a list, but it must be an AdmissionReview"),
        (review(uid=""), "request.uid is"),
        (
            review(name="n" * 254),
            "request.name is a string .*, but it must be at most 253 characters",
        ),
        (review(object=[]), "request.object is a list, but it must be a FabricConfiguration"),
        (
            review(oldObject="x"),
            "request.oldObject is a string, but it must be a FabricConfiguration",
        ),
    ],
    ids=["no review", "no uid", "long name", "object", "old object"],
)
def test_a_malformed_review_is_refused(document: Any, message: str) -> None:
    """The message names the place, without the value."""
    with pytest.raises(ReviewError, match=message):
        read_configuration_review(document, GROUP, KIND)
