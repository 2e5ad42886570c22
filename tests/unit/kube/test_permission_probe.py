from __future__ import annotations

from typing import Any

import pytest

from webhook.errors import ClusterError
from webhook.kube.permission_probe import PATCHES, DryRunResult, probe_permissions

PATH = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations/zz-rdma-webhook"


class Api:
    """An API server with a sequence of status codes; 0 means no answer."""

    def __init__(self, *codes: int) -> None:
        self._codes = list(codes)
        self.asked: list[tuple[str, str, str, list[tuple[str, str]] | None]] = []

    def send(
        self,
        method: str,
        path: str,
        body: Any = None,
        content_type: str = "",
        query: list[tuple[str, str]] | None = None,
    ) -> tuple[int, dict[str, Any]]:
        """Record the request."""
        assert body
        self.asked.append((method, path, content_type, query))
        if not (code := self._codes.pop(0)):
            raise ClusterError("cannot reach the API server")
        return code, {"message": "no\nreason"}


@pytest.mark.parametrize(
    ("codes", "tried"),
    [
        ((403, 403), DryRunResult(allowed=False)),
        ((200,), DryRunResult(allowed=True)),
        ((403, 200), DryRunResult(allowed=True)),
        ((0, 200), DryRunResult(allowed=True)),
        ((404, 404), DryRunResult(None, "the API server answered 404: no reason")),
        ((403, 422), DryRunResult(None, "the API server answered 422: no reason")),
        ((429, 403), DryRunResult(None, "the API server answered 429: no reason")),
        ((0, 503), DryRunResult(None, "cannot reach the API server")),
    ],
)
def test_what_an_answer_means(codes: tuple[int, ...], tried: DryRunResult) -> None:
    """A single allowed change is enough; all must be forbidden for False."""
    assert probe_permissions(Api(*codes), PATH) == tried


def test_nothing_is_ever_stored() -> None:
    """Each request is a dry run on that object, with a merging patch."""
    api = Api(*[403] * len(PATCHES))
    probe_permissions(api, PATH)
    assert [(method, path, query) for method, path, _, query in api.asked] == [
        ("PATCH", PATH, [("dryRun", "All")])
    ] * len(PATCHES)
    assert {kind for _, _, kind, _ in api.asked} == {
        "application/merge-patch+json",
        "application/json-patch+json",
    }
