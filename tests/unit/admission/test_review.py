from __future__ import annotations

from typing import Any, NoReturn

import pytest

from webhook.admission.review import AdmissionRequest, read_review, uid_of
from webhook.errors import ReviewError

POD: dict[str, Any] = {"metadata": {"generateName": "trainer-"}, "spec": {}}


UID = "it must be a string of 1 to 128 characters"


def _review(**changes: Any) -> dict[str, Any]:
    request = {
        "uid": "1-2-3",
        "kind": {"group": "", "version": "v1", "kind": "Pod"},
        "operation": "CREATE",
        "namespace": "lab",
        "dryRun": True,
        "object": POD,
        "oldObject": None,
        **changes,
    }
    return {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}


def test_request_to_create_a_pod() -> None:
    """A request of the API server becomes one record, with the pod unchanged."""
    request = read_review(_review())

    assert request == AdmissionRequest("1-2-3", "lab", "trainer-*", True, "", POD)
    assert request.pod is POD


def test_the_longest_namespace() -> None:
    """It is a DNS label."""
    assert read_review(_review(namespace="n" * 63)).namespace == "n" * 63


@pytest.mark.parametrize(
    ("request_name", "metadata", "name"),
    [
        (None, {"name": "a", "generateName": "b-"}, "a"),
        ("c", {"name": "a"}, "c"),
        (None, {"generateName": "b-"}, "b-*"),
        (None, {}, ""),
        (None, {"name": 7}, ""),
        ("c", None, "c"),
        (7, [], ""),
    ],
)
def test_name_of_the_pod(request_name: Any, metadata: Any, name: str) -> None:
    """A pod without a name is logged by its generateName."""
    assert read_review(_review(name=request_name, object={"metadata": metadata})).name == name


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"operation": "DELETE", "object": None}, "request.operation is 'DELETE', but pods"),
        ({"operation": "UPDATE"}, "request.operation is 'UPDATE'"),
        ({"kind": {"group": "apps", "kind": "Deployment"}}, "request.kind is 'Deployment'"),
        ({"kind": {"group": "metrics.k8s.io", "kind": "Pod"}}, "request.kind is 'Pod', but only"),
        ({"subResource": "ephemeralcontainers"}, "request.subResource is 'ephemeralcontainers'"),
        ({"object": None}, "request.object is null, so there is no pod to change"),
    ],
)
def test_requests_that_create_no_pod_are_not_ours(changes: dict[str, Any], reason: str) -> None:
    """Such requests are allowed unchanged, so that a wrong registration does no harm."""
    assert reason in read_review(_review(**changes)).ignore_reason


def test_absent_fields_mean_the_usual() -> None:
    """A handwritten review may leave out what the API server always sends."""
    document = _review()
    document["request"] = {"uid": "u", "object": POD}

    assert read_review(document) == AdmissionRequest("u", "", "trainer-*", False, "", POD)


@pytest.mark.parametrize(
    ("document", "message"),
    [
        ([1], "the body is a list, but it must be an AdmissionReview"),
        ({}, 'apiVersion is missing, but it must be "admission.k8s.io/v1"'),
        (
            {**_review(), "apiVersion": "admission.k8s.io/v1beta1"},
            (
                "apiVersion is a string ('admission.k8s.io/v1beta1'), but "
                'it must be "admission.k8s.io/v1"'
            ),
        ),
        (
            {**_review(), "kind": "Pod"},
            "kind is a string ('Pod'), but it must be \"AdmissionReview\"",
        ),
        ({**_review(), "request": None}, "request is missing, but it must be an AdmissionRequest"),
        ({**_review(), "request": []}, "request is a list, but it must be an AdmissionRequest"),
        (_review(uid=None), f"request.uid is missing, but {UID}"),
        (
            _review(uid=""),
            f"request.uid is a string (''), but {UID}",
        ),
        (_review(uid=7), f"request.uid is a number (7), but {UID}"),
        (
            _review(uid="u" * 129),
            f"request.uid is a string ('{'u' * 58}…), but {UID}",
        ),
        (
            _review(namespace="n" * 64),
            f"request.namespace is a string ('{'n' * 58}…), but it must be at most 63 characters",
        ),
        (_review(object=["env"]), "request.object is a list, but it must be a Pod"),
        (_review(object="secret"), "request.object is a string, but it must be a Pod"),
        (_review(object="a (secret)"), "request.object is a string, but it must be a Pod"),
    ],
)
def test_a_malformed_review_is_refused_with_its_place(document: Any, message: str) -> None:
    """The message names the place, and leaves out values that could be a whole pod."""
    with pytest.raises(ReviewError) as caught:
        read_review(document)
    assert str(caught.value) == message


class _Unwritten(list[Any]):
    """A list that must not be written as a whole; nested ones take very long."""

    def __repr__(self) -> NoReturn:
        pytest.fail("the whole list was written")


@pytest.mark.parametrize(
    ("document", "message"),
    [
        (_Unwritten([[]]), "the body is a list, but"),
        ({"apiVersion": _Unwritten([[]])}, "apiVersion is a list, but"),
        (_review(uid=_Unwritten([[]])), "request.uid is a list, but"),
        (_review(object=_Unwritten()), "request.object is a list, but"),
    ],
)
def test_a_nested_value_is_not_written(document: Any, message: str) -> None:
    """A refusal takes no longer than the rest of a review."""
    with pytest.raises(ReviewError, match=message):
        read_review(document)


@pytest.mark.parametrize("field", ["operation", "subResource"])
def test_a_nested_value_is_not_written_as_a_reason(field: str) -> None:
    """A request that is not ours takes no longer than others."""
    reason = read_review(_review(**{field: _Unwritten([[]])})).ignore_reason
    assert f"request.{field} is a list, but only" in reason.replace("but pods", "but only")


def test_a_nested_kind_is_not_written() -> None:
    """A kind may be any JSON."""
    reason = read_review(_review(kind={"kind": _Unwritten([[]])})).ignore_reason
    assert "request.kind is a list, but only pods" in reason


@pytest.mark.parametrize(
    ("document", "uid"),
    [
        (_review(), "1-2-3"),
        (_review(uid=7), ""),
        (_review(uid="u" * 129), ""),
        ([], ""),
        (None, ""),
        ({"request": "x"}, ""),
    ],
)
def test_uid_of_anything(document: Any, uid: str) -> None:
    """An error has the uid in its answer whenever it is readable and as short as a uid."""
    assert uid_of(document) == uid
