"""The output of a command in a container, whose shell may be anything."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count, repeat
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import pytest
from kubernetes.client import Configuration
from kubernetes.client.exceptions import ApiException
from websocket import ABNF, WebSocketTimeoutException

from webhook.errors import ClusterError
from webhook.kube import pods
from webhook.kube.access import Overrides
from webhook.kube.client import Client
from webhook.kube.pods import PodAccess, output_of


class Frames:
    """A connection with these frames: the kind, and the data with the number of its channel."""

    def __init__(self, frames: Iterator[tuple[int, bytes]]) -> None:
        self._frames = frames
        self.timeouts: list[float] = []
        self.received = 0

    def settimeout(self, timeout: float) -> None:
        """Record the seconds."""
        self.timeouts.append(timeout)

    def recv_data_frame(self, control_frame: bool = False) -> tuple[int, Any]:
        """Return the next frame, also of control: a ping must not count as the end."""
        assert control_frame
        self.received += 1
        kind, data = next(self._frames)
        if kind < 0:
            raise WebSocketTimeoutException
        return kind, SimpleNamespace(data=data)


def _binary(*data: bytes) -> Iterator[tuple[int, bytes]]:
    yield from ((ABNF.OPCODE_BINARY, part) for part in data)
    yield ABNF.OPCODE_CLOSE, b"\x03\xe8"


def test_both_streams_until_the_end() -> None:
    """The status on channel 3, the end of a stream (255) and pings are no output."""
    frames = _binary(b"\1memory 0\n", b"", b"\2sh: x\xff\n", b"\xff\1", b'\3{"status":"Success"}')
    assert output_of(Frames(frames)) == "memory 0\nsh: x�\n"
    pings = iter([(ABNF.OPCODE_PING, b""), (ABNF.OPCODE_TEXT, b"\1a"), (ABNF.OPCODE_CLOSE, b"")])
    assert output_of(Frames(pings)) == "a"


def test_output_without_an_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is cut, however large a frame is: the person's machine would run out of memory."""
    monkeypatch.setattr(pods, "_MAX_OUTPUT", 10)
    endless = Frames(repeat((ABNF.OPCODE_BINARY, b"\1yyyy")))
    assert output_of(endless) == "y" * 10
    assert endless.received == 3
    assert output_of(Frames(_binary(b"\1" + b"y" * 99))) == "y" * 10


def test_a_trickle_without_an_end() -> None:
    """The time ends, although there is always something to read."""
    clock = count(0.0, 1.0)
    trickle = Frames(repeat((ABNF.OPCODE_BINARY, b"\1y")))
    assert output_of(trickle, lambda: next(clock)) == "y" * 29
    assert trickle.timeouts == [29.0 - number for number in range(29)]


def test_silence_without_an_end() -> None:
    """What was printed before counts."""
    assert output_of(Frames(iter([(ABNF.OPCODE_BINARY, b"\1y"), (-1, b"")]))) == "y"


class Opened:
    """A WebSocket to a command that prints `a`; it records how it was asked for."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.url, self.headers, self.shut_down = "", dict[str, str](), False
        self.sock = Frames(_binary(b"\1a"))
        self.sock.shutdown = self._shutdown  # type: ignore[attr-defined]
        monkeypatch.setattr(pods, "websocket_call", self._open)

    def _open(
        self,
        configuration: Configuration,
        method: str,
        url: str,
        *,
        headers: dict[str, str],
        _preload_content: bool,
    ) -> Opened:
        assert (configuration.host, method, _preload_content) == (_SERVER, "GET", False)
        self.url, self.headers = url, headers
        return self

    def _shutdown(self) -> None:
        self.shut_down = True


_SERVER = "https://api.test:6443"


def _client() -> Client:
    return Client(Path("/absent"), Overrides(server=_SERVER, token="secret"))


def test_request_for_a_command(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each word is a parameter of its own, with the person's token; both streams are wanted."""
    opened = Opened(monkeypatch)
    command = ["sh", "-c", "ls /dev & echo ?"]
    assert PodAccess(_client()).run("team", "pod-1", "main", command) == "a"
    address = urlsplit(opened.url)
    assert f"{address.scheme}://{address.netloc}" == _SERVER
    assert address.path == "/api/v1/namespaces/team/pods/pod-1/exec"
    assert parse_qsl(address.query) == [
        *(("container", "main"), ("stdout", "true"), ("stderr", "true")),
        *(("command", word) for word in command),
    ]
    assert opened.headers["authorization"] == "Bearer secret"
    assert opened.headers["Accept"] == "*/*"
    assert opened.shut_down


def test_command_that_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """The API server's reason is reported."""

    def refuse(*_: object, **__: object) -> None:
        raise ApiException(status=0, reason="Handshake status 403 Forbidden")

    monkeypatch.setattr(pods, "websocket_call", refuse)
    with pytest.raises(ClusterError, match=r"^Handshake status 403 Forbidden$"):
        PodAccess(_client()).run("team", "pod-1", "main", ["true"])
