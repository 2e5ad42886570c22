"""What this machine shows: `discover --run`."""

from __future__ import annotations

import os
import signal
import subprocess

from webhook.diagnose.discover.collection import collect_script

#: For the whole script, in seconds; each of its commands has 20 of its own.
_LONGEST = 300


def run_here(seconds: float = _LONGEST) -> str:
    """Run the script on this machine, and return what it prints; never raises.

    What is wrong is a note in the text, after what could be collected.
    """
    try:
        with subprocess.Popen(  # noqa: S603
            ["sh", "-c", collect_script()],  # noqa: S607
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        ) as process:
            return _printed(process, seconds)
    except OSError as error:
        return f"### note: cannot run sh: {error.strerror}\n"


def _printed(process: subprocess.Popen[bytes], seconds: float) -> str:
    try:
        out, _ = process.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        out, _ = process.communicate()
        return f"{_text(out)}\n### note: stopped after {seconds:.0f} s\n"
    return _text(out)


def _text(out: bytes) -> str:
    return out.decode("utf-8", "replace")
