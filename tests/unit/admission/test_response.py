from __future__ import annotations

import base64
import json
from typing import Any

from webhook.admission.response import MAX_WARNINGS_LENGTH, allow_unchanged, answer, failure, reject
from webhook.model.decision import Decision, PatchOp, Reason

PATCHED = Reason("Patched", "It was changed.", "")
DENIED = Reason("FabricConflict", "Two fabrics.", "")


def _wrapped(response: dict[str, Any]) -> dict[str, Any]:
    return {
        "apiVersion": "admission.k8s.io/v1",
        "kind": "AdmissionReview",
        "response": response,
    }


def test_patch_is_sent_with_its_type() -> None:
    """A patch is a base64-encoded JSON Patch with a patchType; the audit has no message."""
    ops: tuple[PatchOp, ...] = ({"op": "add", "path": "/metadata/labels/é", "value": "x"},)
    decision = Decision(
        allowed=True,
        reason=PATCHED,
        pod={},
        patch=ops,
        warnings=("one", "two"),
        audit={"fabric": "ib"},
        message="not sent",
    )
    response = answer("u", decision)["response"]

    patch = response.pop("patch")
    assert json.loads(base64.b64decode(patch, validate=True)) == list(ops)
    assert response == {
        "uid": "u",
        "allowed": True,
        "patchType": "JSONPatch",
        "warnings": ["one", "two"],
        "auditAnnotations": {"fabric": "ib"},
    }


def test_no_patch_leaves_out_patch_and_type() -> None:
    """The API server rejects a patch type without a patch, and an empty patch."""
    decision = Decision(allowed=True, reason=PATCHED, pod={})

    assert answer("u", decision) == _wrapped({"uid": "u", "allowed": True})


def test_denial_has_a_message_and_never_a_patch() -> None:
    """A denied pod is answered with 403 and the sentence that the user sees."""
    decision = Decision(
        allowed=False,
        reason=DENIED,
        message="two fabrics: a, b",
        pod={},
        patch=({"op": "remove", "path": "/spec"},),
        warnings=("w",),
    )

    assert answer("u", decision) == _wrapped(
        {
            "uid": "u",
            "allowed": False,
            "status": {
                "status": "Failure",
                "code": 403,
                "reason": "Forbidden",
                "message": "two fabrics: a, b",
            },
            "warnings": ["w"],
        }
    )


def test_denial_without_a_message_says_its_reason() -> None:
    """If a denial has no message, the message is the reason code."""
    decision = Decision(allowed=False, reason=DENIED, pod={})

    assert answer("u", decision)["response"]["status"]["message"] == "FabricConflict"


def test_warnings_stay_below_what_the_api_server_drops() -> None:
    """The API server cuts warnings beyond 4096 characters in total; only whole ones are sent."""
    decision = Decision(allowed=True, reason=PATCHED, pod={}, warnings=("x" * 120,) * 50)
    sent = answer("u", decision)["response"]["warnings"]

    assert len(sent) == MAX_WARNINGS_LENGTH // 120


def test_warnings_are_sent_up_to_the_first_that_does_not_fit() -> None:
    """They may fill the room exactly, and keep their order."""
    first, last = "x" * (MAX_WARNINGS_LENGTH - 9), "y" * 9
    for warnings, expected in (((first, last), [first, last]), ((first, last + "y", ""), [first])):
        decision = Decision(allowed=True, reason=PATCHED, pod={}, warnings=warnings)
        assert answer("u", decision)["response"]["warnings"] == expected


def test_requests_that_are_not_ours_pass_with_a_warning() -> None:
    """They are allowed unchanged; the warning names the place, and fits into an HTTP header."""
    response = allow_unchanged("u", "request.kind is 'Ünï', but only pods are changed")["response"]

    assert (response["uid"], response["allowed"], "patch" in response) == ("u", True, False)
    assert response["warnings"] == [
        "rdma-webhook: request.kind is '\\xdcn\\xef', but only pods are changed"
    ]
    (warning,) = allow_unchanged("u", "é" * 100)["response"]["warnings"]
    assert warning == f"rdma-webhook: {chr(92)}xe9" + f"{chr(92)}xe9" * 25 + f"{chr(92)}x"


def test_refusals_have_code_reason_and_a_bounded_message() -> None:
    """A message that echoes input is cut to a readable length."""
    status = reject("u", 500, "m" * 5000)["response"]["status"]

    assert (status["code"], status["reason"], len(status["message"])) == (
        500,
        "InternalError",
        2048,
    )


def test_an_error_of_http_is_a_status_of_its_own() -> None:
    """The API server shows its message; it would show an AdmissionReview as "unknown"."""
    assert failure(503, "later") == {
        "apiVersion": "v1",
        "kind": "Status",
        "metadata": {},
        "status": "Failure",
        "code": 503,
        "reason": "ServiceUnavailable",
        "message": "later",
    }
    assert len(failure(400, "m" * 5000)["message"]) == 2048


def test_a_request_that_is_not_ours_is_allowed_and_says_why() -> None:
    """The API server shows the warning to the user, and keeps the message."""
    assert allow_unchanged("u", "only pods are changed") == _wrapped(
        {
            "uid": "u",
            "allowed": True,
            "warnings": ["rdma-webhook: only pods are changed"],
            "status": {"message": "only pods are changed"},
        }
    )
