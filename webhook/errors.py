"""The errors that this package raises deliberately.

    WebhookError
    ├─ ConfigError     a fabrics or facts file that cannot be used   → exit 2; last valid one kept
    ├─ DocumentError   input that is not readable YAML or JSON       → exit 2, HTTP 400
    │  └─ NotKubernetesError  a template, Helm values or the like    → skipped in a directory
    ├─ ReviewError     a body that is not an AdmissionReview v1      → HTTP 4xx
    ├─ ShapeError      a pod field of a type that Kubernetes rejects → the pod is denied
    ├─ ClusterError    the API server is unreachable, or refuses     → tried again; exit 2
    └─ Denial          a pod that we deny (model.decision)           → `allowed: false`
    RequestError       an HTTP request that a handler rejects        → its HTTP status

A message states the fault, the value, its place and the remedy.
"""

from __future__ import annotations

import traceback


class WebhookError(Exception):
    """The base of all errors here; `str(error)` is a sentence for the user."""


class ConfigError(WebhookError):
    """An unusable configuration or facts file."""


class DocumentError(WebhookError):
    """An unreadable document: not YAML, not JSON, too deep or too large."""


class NotKubernetesError(DocumentError):
    """A text without Kubernetes objects, where none are required."""


class ReviewError(WebhookError):
    """A request body that is not a decidable AdmissionReview v1."""


class ShapeError(WebhookError):
    """A pod field with a type or a value that the API server would reject."""


class ClusterError(WebhookError):
    """An unreachable API server, or its refusal of a request."""


def read_failure(error: OSError | ValueError) -> str:
    """Return why a file cannot be read, for a message that begins with its name."""
    if isinstance(error, FileNotFoundError):
        return "no such file or directory"
    if isinstance(error, IsADirectoryError):
        return "is a directory; name a file in it"
    return f"cannot be read: {getattr(error, 'strerror', None) or error}"


# The exception that a handler raises to reject a request.


class RequestError(Exception):
    """The rejection of a request, with an HTTP status and a line of text."""

    def __init__(self, status: int, message: str, *, close: bool = False) -> None:
        super().__init__(message)
        self.status = status
        self.close = close


def crash_summary(error: BaseException) -> dict[str, str | list[str]]:
    """Describe an exception by its type and the lines it passed through, innermost last.

    The message is left out, since it may quote a pod.
    """
    frames = traceback.extract_tb(error.__traceback__)
    return {
        "error": type(error).__name__,
        "trace": [
            f"{frame.filename.rpartition('/')[2]}:{frame.lineno} {frame.name}"
            for frame in frames[-12:]
        ],
    }
