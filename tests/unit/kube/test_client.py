from __future__ import annotations

from http import HTTPStatus
from pathlib import Path
from typing import Any

import pytest

from webhook.kube.access import Overrides
from webhook.kube.client import FIELD_MANAGER, MAX_UPDATES, SECONDS, Client

KUBECTL = {"manager": "kubectl", "operation": "Update"}
REPLICA = {"manager": FIELD_MANAGER, "operation": "Update", "fieldsV1": {"f:spec": {}}}


class Recorder(Client):
    """A client that sends nothing, and keeps the body of the last request."""

    def __init__(self) -> None:  # without credentials
        self.body: Any = None

    def send(
        self,
        method: str,
        path: str,
        body: Any = None,
        content_type: str = "",
        query: list[tuple[str, str]] | None = None,
    ) -> tuple[int, dict[str, Any]]:
        """Accept a replacement by our field manager."""
        assert (method, path, content_type) == ("PUT", "/x", "application/json")
        assert query == [("fieldManager", FIELD_MANAGER)]
        self.body = body
        return HTTPStatus.OK, {}


@pytest.mark.parametrize(
    ("entries", "sent"),
    [
        ([KUBECTL, REPLICA, {**REPLICA, "subresource": "x"}], [KUBECTL]),
        ([REPLICA], [{}]),
        ([KUBECTL], [KUBECTL]),
    ],
)
def test_a_replacement_has_no_entry_of_its_own(entries: list[object], sent: list[object]) -> None:
    """A thief may have filled it to the guards' limit, beyond which they reject our own writes."""
    client = Recorder()
    body: dict[str, Any] = {"metadata": {"name": "a", "managedFields": entries}, "spec": {"b": 1}}

    assert client.replace("/x", body)
    assert client.body == {"metadata": {"name": "a", "managedFields": sent}, "spec": {"b": 1}}
    assert body["metadata"]["managedFields"] is entries


def test_a_replacement_leaves_room_for_its_own_entry() -> None:
    """The API server merges entries of updates beyond its maximum, which the guards reject."""
    applied = {"manager": "kubectl", "operation": "Apply"}
    updates = [{"manager": f"m{number}", "operation": "Update"} for number in range(MAX_UPDATES)]
    client = Recorder()
    for entries, sent in (
        ([applied, *updates[1:], REPLICA], [applied, *updates[1:]]),
        ([applied, *updates], [applied, *updates[1:]]),
    ):
        client.replace("/x", {"metadata": {"managedFields": entries}})
        assert client.body["metadata"]["managedFields"] == sent


def test_a_replacement_without_entries_stays_as_it_is() -> None:
    """An object that was never stored has none."""
    client = Recorder()

    assert client.replace("/x", {"metadata": {"name": "a"}})
    assert client.body == {"metadata": {"name": "a"}}


@pytest.mark.parametrize(
    ("request_timeout", "limits"), [(0, SECONDS), (2, (2, 2)), (5, (3, 5)), (120, SECONDS)]
)
def test_a_request_timeout(
    request_timeout: float, limits: tuple[float, float], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It only shortens the timeouts for connecting and for an answer; 0 leaves them."""
    client = Client(Path("none"), Overrides(server="http://a", request_timeout=request_timeout))
    sent: list[object] = []
    monkeypatch.setattr(
        client.api, "call_api", lambda *_, _request_timeout: sent.append(_request_timeout)
    )

    client.open("GET", "/x")
    assert sent == [limits]
