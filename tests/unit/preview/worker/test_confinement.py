"""Tests of what the worker process can no longer do, run in a confined process."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from itertools import cycle
from pathlib import Path
from typing import Any

import pytest

from webhook.preview.formats import HTTP_FORMATS
from webhook.preview.worker.confinement import MAX_ADDRESS_SPACE, MAX_CPU_SECONDS
from webhook.preview.worker.frames import frame_start, read_frame

GOLDEN = Path(__file__).parents[3] / "golden"
#: Tries a few actions after confining itself. It closes standard error first, so that a
#: descriptor's number is free.
PROGRAM = """\
import ctypes, errno, json, os, resource, signal, socket, subprocess, sys, tempfile
from webhook.preview.worker.confinement import limit_cpu_seconds, confine
resource.setrlimit(resource.RLIMIT_CPU, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
def tried(what):
    try:
        return str(what())
    except OSError as error:
        return errno.errorcode[error.errno]
    except MemoryError:
        return "MemoryError"
confine()
os.close(2)
told = {
    "file": tried(lambda: os.open("/etc/passwd", os.O_RDONLY)),
    "socket": tried(socket.socket),
    "pipe": tried(os.pipe),
    "copy": tried(lambda: os.dup(0)),
    "program": tried(lambda: subprocess.run(["true"])),
    "memory": tried(lambda: bytearray(%d)),
    "more files": tried(lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (0, 0))),
    "limits": {name: resource.getrlimit(getattr(resource, "RLIMIT_" + name))
               for name in ("AS", "CORE", "CPU", "FSIZE", "NOFILE", "NPROC")},
    "prctl": [ctypes.CDLL(None).prctl(option, 0, 0, 0, 0) for option in (3, 39)],
    "fork": "root" if os.getuid() == 0 else tried(os.fork),
}
died = ctypes.c_int()
ctypes.CDLL(None).prctl(2, ctypes.byref(died), 0, 0, 0)
told["dies by"] = died.value
limit_cpu_seconds()
told["seconds"] = resource.getrlimit(resource.RLIMIT_CPU)[0]
os.write(1, json.dumps(told).encode())
"""
pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only on Linux is it given up")


@pytest.fixture(scope="module")
def report() -> Any:
    """Return the report of a confined process."""
    command = [sys.executable, "-I", "-c", PROGRAM % MAX_ADDRESS_SPACE]
    # The environment is empty, as when the server starts it.
    return json.loads(subprocess.run(command, env={}, capture_output=True, check=True).stdout)


@pytest.mark.parametrize(
    ("action", "error"),
    [
        ("file", "EMFILE"),
        ("socket", "EMFILE"),
        ("pipe", "EMFILE"),
        ("program", "EMFILE"),
        ("copy", "EINVAL"),  # fcntl(2), F_DUPFD
    ],
)
def test_nothing_can_be_opened(report: Any, action: str, error: str) -> None:
    """Even a closed descriptor's number cannot be used: there is no token on disk, no network."""
    assert report[action] == error


def test_memory_has_an_end(report: Any) -> None:
    """Too large an allocation is a MemoryError; the pod does not end."""
    assert report["memory"] == "MemoryError"


def test_no_process_can_be_made(report: Any) -> None:
    """The limit applies to all users except root, and the image does not run as root."""
    assert report["fork"] in ("root", "EAGAIN")


def test_limits_cannot_be_raised(report: Any) -> None:
    """Soft and hard limits are equal; there are no core dumps and no new privileges."""
    assert report["limits"] == {
        "AS": [MAX_ADDRESS_SPACE, MAX_ADDRESS_SPACE],
        "CORE": [0, 0],
        "CPU": [-1, -1],
        "FSIZE": [0, 0],
        "NOFILE": [0, 0],
        "NPROC": [0, 0],
    }
    dumpable, no_new_privileges = report["prctl"]
    assert (dumpable, no_new_privileges) == (0, 1)


def test_it_dies_with_the_server(report: Any) -> None:
    """The kernel sends it SIGKILL, which needs no handler."""
    assert report["dies by"] == 9


def test_processor_time_of_a_request_is_limited(report: Any) -> None:
    """The limit counts from the time used so far, so the process may live for any time."""
    assert MAX_CPU_SECONDS <= report["seconds"] <= MAX_CPU_SECONDS + 60


def _cases() -> Iterator[tuple[bytes, bytes]]:
    for pod in sorted(GOLDEN.glob("*/*/pod.yaml")):
        yield pod.with_name("fabrics.yaml").read_bytes(), pod.read_bytes()


UNREADABLE = [
    b"",
    b"a: [",
    b"\xff\xff",
    b"[" * 100_000,
    b'{"a": }',
    "a: ä".encode("utf-16"),
    b"- x",
]


def test_everything_that_it_needs_is_there() -> None:
    """No module is missing for any golden pod in any format, or for unreadable input."""
    command = [sys.executable, "-I", "-m", "webhook.preview.worker"]
    request = {
        "operation": "preview",
        "namespace": "训练",
        "labels": {},
        "enable": True,
        "max_pods": 9,
        "example": False,
    }
    with subprocess.Popen(
        command, env={}, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd="/"
    ) as worker:
        assert worker.stdin is not None
        assert worker.stdout is not None
        requests, answers = worker.stdin, worker.stdout

        def answer(head: Any, body: bytes) -> Any:
            requests.write(frame_start(head, len(body)) + body)
            requests.flush()
            answered = read_frame(answers.read, 1 << 30)
            assert answered is not None
            return answered[0]

        assert read_frame(answers.read, 0) == ({"status": 200}, b"")
        for output, (fabrics, pod) in zip(cycle(HTTP_FORMATS), _cases(), strict=False):
            assert answer({"operation": "configure"}, fabrics)["status"] == 200
            assert answer({**request, "format": output.name}, pod) == {"status": 200}
            wide = pod.replace(b"name: ", "name: 训练👩‍👧".encode())
            assert answer({**request, "format": output.name}, wide)["status"] in (200, 400)
        for body in UNREADABLE:
            assert answer({**request, "format": "text"}, body)["status"] == 400
        worker.stdin.close()
        assert worker.wait() == 0
