from __future__ import annotations

from http import HTTPStatus
from pathlib import Path
from typing import Any

import pytest

from webhook.errors import ClusterError
from webhook.kube.access import Overrides
from webhook.kube.api import PlainAnswer
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


class _Response:
    """An answer of urllib3, or one that breaks off."""

    def __init__(self, body: bytes, headers: dict[str, str], failure: OSError | None) -> None:
        self.status = 503
        self.headers = headers
        self._body, self._failure = body, failure

    def read(self) -> bytes:
        """Return the body."""
        if self._failure:
            raise self._failure
        return self._body


def _answering(
    monkeypatch: pytest.MonkeyPatch,
    body: bytes,
    failure: OSError | None = None,
    **headers: str,
) -> Client:
    client = Client(Path("none"), Overrides(server="http://a"))
    response = _Response(body, headers, failure)
    monkeypatch.setattr(client.api, "call_api", lambda *_, **_options: response)
    return client


def test_a_plain_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    """It has any status and any text, and the time of the API server if that sent it."""
    client = _answering(monkeypatch, b"[-] a: \xff", Date="now")
    assert client.plain("/x") == PlainAnswer(503, "[-] a: \ufffd", "now")
    assert _answering(monkeypatch, b"").plain("/x") == PlainAnswer(503, "", "")


def test_a_plain_answer_that_breaks_off(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is no answer."""
    client = _answering(monkeypatch, b"", OSError(104, "Connection reset by peer"))
    with pytest.raises(ClusterError, match="cannot reach the API server http://a: Connection"):
        client.plain("/x")
