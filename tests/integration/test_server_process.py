"""What other processes can see of the serving process."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.integration.serving import Process

#: prctl(2): 3 is PR_GET_DUMPABLE.
_SERVE = """\
import ctypes, sys
from webhook.serve.server import ServeOptions, serve
def announce(_):
    print("dumpable", ctypes.CDLL(None).prctl(3, 0, 0, 0, 0), flush=True)
free = {"port": 0, "preview_port": 0, "health_port": 0, "page_port": 0}
sys.exit(serve(ServeOptions(dev=True, announce=announce, **free)))
"""
_ROOT = Path(__file__).parents[2]


def _limit(process: Process, name: str) -> list[str]:
    """Return the soft and the hard limit."""
    limits = Path(f"/proc/{process.process.pid}/limits").read_text()
    (line,) = (line for line in limits.splitlines() if line.startswith(name))
    return line[len(name) :].split()[:2]


def test_limits(process: Process) -> None:
    """No core file, and as many connections as the system allows."""
    soft, hard = _limit(process, "Max open files")

    assert _limit(process, "Max core file size") == ["0", "0"]
    assert soft == hard


def test_metrics_of_the_process_are_still_there(process: Process) -> None:
    """The process can still read its own figures, although no other process may inspect it."""
    assert (process.metric("process_resident_memory_bytes") or 0) > 0
    assert (process.metric("process_open_fds") or 0) > 0


@pytest.mark.skipif(sys.platform != "linux", reason="prctl is Linux'")
def test_nobody_reads_its_memory(tmp_path: Path) -> None:
    """The process holds the CA's key, so it leaves no core file, and its user cannot trace it."""
    with subprocess.Popen(
        [sys.executable, "-c", _SERVE],
        cwd=tmp_path,
        env={**os.environ, "XDG_STATE_HOME": str(tmp_path), "PYTHONPATH": str(_ROOT)},
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        printed = next(line for line in process.stdout if line.startswith("dumpable"))
        owner = Path(f"/proc/{process.pid}/mem").stat().st_uid
        process.send_signal(signal.SIGSEGV)
        _, status = os.waitpid(process.pid, 0)
        process.returncode = -signal.SIGSEGV  # it has been waited for

    assert (printed, owner) == ("dumpable 0\n", 0)
    assert (os.WTERMSIG(status), os.WCOREDUMP(status)) == (signal.SIGSEGV, False)
    assert [file.name for file in tmp_path.iterdir() if "core" in file.name] == []
