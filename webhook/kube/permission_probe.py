"""Dry runs that show whether this account may change more than `caBundle`.

No readable object shows it for certain: RBAC has no rights on fields, and whether a policy applies
depends on its binding, its conditions and the account's name. A dry run of a change to a webhook
configuration goes through all of that, and stores nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from http import HTTPStatus
from typing import NamedTuple, Protocol

from webhook.errors import ClusterError
from webhook.kube.api import message_of

#: The parameter that keeps the API server from storing a change.
DRY_RUN = [("dryRun", "All")]


class Patch(NamedTuple):
    """The body of a PATCH."""

    content_type: str
    body: dict[str, object] | list[dict[str, object]]


#: Harmless changes that fit any webhook configuration: an annotation, and a rule for one more kind,
#: our own.
PATCHES = (
    Patch(
        "application/merge-patch+json",
        {"metadata": {"annotations": {"rdma.lab/guard": "this change must be rejected"}}},
    ),
    Patch(
        "application/json-patch+json",
        [
            {
                "op": "add",
                "path": "/webhooks/0/rules/-",
                "value": {
                    "apiGroups": ["rdma.lab"],
                    "apiVersions": ["*"],
                    "operations": ["CREATE"],
                    "resources": ["fabricconfigurations"],
                },
            }
        ],
    ),
)


class RawApi(Protocol):
    """An API server."""

    def send(
        self,
        method: str,
        path: str,
        body: dict[str, object] | list[dict[str, object]] | None = None,
        content_type: str = "",
        query: list[tuple[str, str]] | None = None,
    ) -> tuple[int, dict[str, object]]:
        """Return the status and the object of an answer; raise ClusterError without an answer."""


class DryRunResult(NamedTuple):
    """The result of the dry runs."""

    #: Whether the API server would make one of the changes; None if unknown.
    allowed: bool | None
    #: The reason why it is unknown; "" otherwise.
    problem: str = ""


def probe_permissions(api: RawApi, path: str) -> DryRunResult:
    """Try dry-run changes of the webhook configuration at a path; never raises."""
    unknown = ""
    for status, message in _answers(api, path):
        if status == HTTPStatus.OK:
            return DryRunResult(allowed=True)
        if status != HTTPStatus.FORBIDDEN:
            unknown = unknown or message
    return DryRunResult(None, unknown) if unknown else DryRunResult(allowed=False)


def _answers(api: RawApi, path: str) -> Iterator[tuple[int, str]]:
    for patch in PATCHES:
        try:
            status, answer = api.send("PATCH", path, patch.body, patch.content_type, DRY_RUN)
        except ClusterError as error:
            yield 0, str(error)
        else:
            yield status, f"the API server answered {status}: {message_of(answer)}"
