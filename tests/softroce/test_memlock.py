"""The conditions for registering memory, tried by real perftest on a real verbs device."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

WORKS, REFUSED, KILLED = "works", "refused", "killed"

#: 64 MiB each, unless the name has another size; the limit is the 8 MiB that containers get.
TABLE = {
    "root-ipc_lock": WORKS,
    "root": REFUSED,
    "user": REFUSED,
    "user-namespace": REFUSED,
    "small-region": WORKS,
    "user-unlimited": WORKS,
    "root-48-mib": KILLED,
    "root-192-mib": WORKS,
}


@pytest.fixture(scope="module")
def results(experiment: Callable[[str, float], Path]) -> Path:
    """Run all rows in one machine."""
    return experiment("memlock", 1800)


@pytest.mark.parametrize(("case", "expected"), TABLE.items(), ids=TABLE)
def test_memlock(results: Path, case: str, expected: str) -> None:
    """IPC_LOCK helps root alone; a memory limit refuses nothing, but kills if it is too small."""
    output = "".join((results / f"{case}.{end}.txt").read_text() for end in ("server", "client"))
    status = int((results / f"{case}.status").read_text())
    if expected == WORKS:
        assert status == 0, output
        assert "MsgRate" in output
    elif expected == REFUSED:
        assert status not in (0, 137), output
        assert "Couldn't allocate MR" in output
    else:
        assert "Couldn't allocate MR" not in output
        events = dict(
            line.split() for line in (results / f"{case}.events").read_text().splitlines()
        )
        assert int(events["oom_kill"]) > 0
