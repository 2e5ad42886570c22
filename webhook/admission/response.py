"""Write an AdmissionReview answer.

Limits of the API server (staging/src/k8s.io/apiserver, pkg/endpoints/filters/warning.go
and pkg/admission/plugin/webhook): warnings of more than 4096 characters in total are truncated
or dropped; `patch` needs `patchType`, and vice versa. The API server reads `status` only in a
denial.
"""

from __future__ import annotations

from binascii import b2a_base64
from collections.abc import Iterable

import orjson

from webhook.admission.review import API_VERSION, KIND
from webhook.decide.admission_warnings import MAX_WARNING_LENGTH
from webhook.model.decision import Decision
from webhook.model.json import JsonObject

#: Below the API server's 4096, for all warnings of one answer together.
MAX_WARNINGS_LENGTH = 4095
#: The maximum length of a message; a longer message only repeats the value of an annotation.
MESSAGE_LENGTH = 2048

#: The reasons of metav1.Status that are used here, by code.
_REASONS = {400: "BadRequest", 403: "Forbidden", 500: "InternalError", 503: "ServiceUnavailable"}


def answer(uid: str, decision: Decision) -> JsonObject:
    """Return the answer for a decision: allowed, with its patch, or denied."""
    if not decision.allowed:
        refusal = reject(uid, 403, decision.message or decision.reason.code)
        _describe(refusal["response"], decision)
        return refusal
    response: JsonObject = {"uid": uid, "allowed": True}
    if decision.patch:
        response["patchType"] = "JSONPatch"
        response["patch"] = b2a_base64(orjson.dumps(decision.patch), newline=False).decode()
    _describe(response, decision)
    return {"apiVersion": API_VERSION, "kind": KIND, "response": response}


def allow_unchanged(uid: str, reason: str) -> JsonObject:
    """Return the answer for a request that is not ours: allowed, unchanged, with a warning."""
    warning = f"rdma-webhook: {reason}".encode("ascii", "backslashreplace").decode()[
        :MAX_WARNING_LENGTH
    ]
    response = {"uid": uid, "allowed": True, "warnings": [warning], "status": {"message": reason}}
    return {"apiVersion": API_VERSION, "kind": KIND, "response": response}


def reject(uid: str, code: int, message: str) -> JsonObject:
    """Return the answer that rejects a request with a code and a message."""
    response = {"uid": uid, "allowed": False, "status": _status(code, message)}
    return {"apiVersion": API_VERSION, "kind": KIND, "response": response}


def failure(code: int, message: str) -> JsonObject:
    """Return a Status as the body of an HTTP error, for which failurePolicy decides.

    The API server shows its message to the creator of the pod, but would show an AdmissionReview
    as "unknown" (client-go, rest/request.go, transformResponse).
    """
    return {"apiVersion": "v1", "kind": "Status", "metadata": {}, **_status(code, message)}


def _status(code: int, message: str) -> JsonObject:
    return {
        "status": "Failure",
        "code": code,
        "reason": _REASONS[code],
        "message": message[:MESSAGE_LENGTH],
    }


def _describe(response: JsonObject, decision: Decision) -> None:
    if decision.warnings:
        response["warnings"] = _fitting(decision.warnings)
    if decision.audit:
        response["auditAnnotations"] = dict(decision.audit)


def _fitting(warnings: Iterable[str]) -> list[str]:
    """Return the first warnings that fit together; the status annotation has all of them."""
    fitting: list[str] = []
    room = MAX_WARNINGS_LENGTH
    for warning in warnings:
        room -= len(warning)
        if room < 0:
            break
        fitting.append(warning)
    return fitting
