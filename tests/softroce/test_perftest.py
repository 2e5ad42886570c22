"""`verify judge` on what real perftest says on a real verbs device, well and ill."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

#: The run → the verdict and its code. All runs have both ends on one machine, so that no speed
#: says anything of a link.
EXPECTED = {
    "bandwidth": ("inconclusive", "Loopback"),
    "all-sizes": ("inconclusive", "Loopback"),
    "duration": ("inconclusive", "Loopback"),
    "both-ways": ("inconclusive", "Loopback"),
    "latency": ("inconclusive", "Loopback"),
    "other-namespace": ("inconclusive", "Loopback"),
    "other-device": ("fail", "DeviceNotFound"),
    "port-down": ("fail", "PortDown"),
    "empty-gid": ("fail", "QueuePairRefused"),
}


@pytest.fixture(scope="module")
def results(experiment: Callable[[str, float], Path]) -> Path:
    """Run perftest in all these ways in one machine."""
    return experiment("perftest", 900)


def _judged(*files: Path) -> dict[str, Any]:
    argv = [sys.executable, "-m", "webhook", "verify", "judge", "--rate", "10", "-o", "json"]
    ran = subprocess.run([*argv, *files], capture_output=True, text=True, check=False)
    assert not ran.stderr, ran.stderr
    found: dict[str, Any] = json.loads(ran.stdout)
    return found


@pytest.mark.parametrize(("run", "expected"), EXPECTED.items(), ids=EXPECTED)
def test_verify_names_what_is_wrong(results: Path, run: str, expected: tuple[str, str]) -> None:
    """What was planted is what is named; what worked is not called good without a link."""
    judged = _judged(results / f"{run}.client.txt", results / f"{run}.server.txt")
    assert (judged["verdict"], judged["code"]) == expected


@pytest.mark.parametrize("run", ["bandwidth", "both-ways", "all-sizes"])
def test_the_speed_is_the_one_printed(results: Path, run: str) -> None:
    """The largest average that perftest prints in Gb/s is what is read, by its message rate."""
    judged = _judged(results / f"{run}.client.txt")
    rows = [
        line.split()
        for line in (results / f"{run}.client.txt").read_text().splitlines()
        if line.strip()[:1].isdigit() and len(line.split()) == 5
    ]
    best = max(float(row[3]) for row in rows)
    assert judged["measurements"][0]["gbps"] == pytest.approx(best, abs=0.02)


def test_json_that_is_none(results: Path) -> None:
    """The report file of this perftest has unquoted keys and trailing commas, and is read."""
    text = (results / "report.json").read_text()
    with pytest.raises(json.JSONDecodeError):
        json.loads(text)
    (measurement,) = _judged(results / "report.json")["measurements"]
    assert measurement["gbps"] > 0
