"""What is read, and what follows from an answer that has no object."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest

from tests.unit.diagnose.install.installation import NOW, Installation
from webhook.diagnose.install.facts import ClockFacts
from webhook.diagnose.install.reads import read_clocks, right_to_read
from webhook.errors import ClusterError
from webhook.kube.api import PlainAnswer
from webhook.model.finding import Finding


@pytest.mark.parametrize(
    ("path", "right"),
    [
        ("/api/v1/namespaces/lab", "get namespaces"),
        ("/api/v1/namespaces/a/services/b", "get services in namespace a"),
        ("/apis/apps/v1/namespaces/a/deployments/b", "get deployments.apps in namespace a"),
        ("/apis/rdma.lab/v1alpha1/fabricconfigurations/b", "get fabricconfigurations.rdma.lab"),
    ],
)
def test_the_right_for_a_path(path: str, right: str) -> None:
    """It is written as for `kubectl auth can-i`, with the namespace of a namespaced object."""
    assert right_to_read(path, "get") == right


def test_credentials_that_are_not_accepted(installation: Installation) -> None:
    """Nothing can be checked, so it is no finding."""
    installation.refuse("Deployment", "rdma-webhook", 401)
    with pytest.raises(ClusterError, match="the API server answered 401: no"):
        installation.check()


def test_an_error_of_the_api_server(installation: Installation) -> None:
    """It is no missing right, and perhaps temporary."""
    installation.refuse("Lease", "rdma-webhook", 500)
    text = "Lease rdma-webhook: not checked, since the API server answered 500: no"
    assert installation.findings() == [
        Finding("unsure", "NotChecked", text, "Run the command again.")
    ]


class _Server:
    """An API server whose answer takes four seconds."""

    def __init__(self, date: str) -> None:
        self.date = date
        self.now = NOW

    def plain(self, path: str) -> PlainAnswer:
        """Answer."""
        assert path == "/version"
        self.now += timedelta(seconds=4)
        return PlainAnswer(200, "{}", self.date)

    def time(self) -> datetime:
        """Return the time of this machine."""
        return self.now


@pytest.mark.parametrize(
    ("date", "server"),
    [
        ("Sun, 29 Nov 2026 04:00:02 GMT", NOW + timedelta(seconds=2)),
        ("tomorrow", None),
        ("", None),
    ],
)
def test_clocks(date: str, server: datetime | None) -> None:
    """Both times are of the same moment, except for half of the time that the answer took."""
    api = _Server(date)
    half = timedelta(seconds=2)
    assert read_clocks(api, api.time) == ClockFacts(server, NOW + half, half)  # type: ignore[arg-type]
