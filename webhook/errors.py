"""Every error that this package raises on purpose.

    WebhookError
    ├─ ConfigError     a fabrics or facts file that cannot be used   → exit 2; last good one kept
    ├─ DocumentError   input that is not readable YAML or JSON       → exit 2, HTTP 400
    │  └─ NotKubernetesError  a template, values, settings of a tool → skipped in a directory
    ├─ ReviewError     a body that is not an AdmissionReview v1      → HTTP 4xx
    ├─ ShapeError      a pod field of a type that Kubernetes rejects → the pod is denied
    ├─ ClusterError    the API server is unreachable, or refuses     → tried again; exit 2
    └─ Denial          a pod that we deny (model.decision)           → `allowed: false`

A message states what is wrong, the value, where it is, and what would be right.
"""

from __future__ import annotations

import traceback


class WebhookError(Exception):
    """The base of all errors here: `str(error)` is a sentence for a person."""


class ConfigError(WebhookError):
    """A configuration or facts file cannot be used."""


class DocumentError(WebhookError):
    """A document cannot be read: not YAML, not JSON, too deep, too large."""


class NotKubernetesError(DocumentError):
    """A text holds something else than Kubernetes objects; nothing says that it should."""


class ReviewError(WebhookError):
    """A request body is not an AdmissionReview v1 that can be decided."""


class ShapeError(WebhookError):
    """A field of a pod has a type or a value that the API server would reject."""


class ClusterError(WebhookError):
    """The API server could not be reached, or refused a request."""


# The exception with which a handler rejects a request.


class RequestError(Exception):
    """A request that is rejected, with a status and one line of text."""

    def __init__(self, status: int, message: str, *, close: bool = False) -> None:
        super().__init__(message)
        self.status = status
        self.close = close


# Describe a defect by the type of its exception and the lines of code it passed through.
#
# The exception's message is left out, since it may quote a pod.


def crash_summary(error: BaseException) -> dict[str, str | list[str]]:
    """Describe an exception by its type and the lines it passed through, innermost last."""
    frames = traceback.extract_tb(error.__traceback__)
    return {
        "error": type(error).__name__,
        "trace": [
            f"{one.filename.rpartition('/')[2]}:{one.lineno} {one.name}" for one in frames[-12:]
        ],
    }
