"""`verify judge` on what real perftest says on a real verbs device, well and ill."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.softroce.kept import Transcript, rdma_webhook

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
    "no-ipc-lock": ("fail", "PerftestNoMemory"),
    "killed": ("fail", "ProcessKilled"),
    "no-server": ("fail", "ServerUnreachable"),
    "firewall": ("fail", "ServerUnreachable"),
}


@pytest.fixture(scope="module")
def results(experiment: Callable[[str, float], Path]) -> Path:
    """Run perftest in all these ways in one machine."""
    return experiment("perftest", 1800)


@pytest.fixture(scope="module")
def transcript() -> Transcript:
    """Keep what `verify judge` says of them."""
    return Transcript("verdicts")


def _judged(*files: Path) -> dict[str, Any]:
    ran = rdma_webhook("verify", "judge", "--rate", "10", "-o", "json", *files)
    assert not ran.stderr, ran.stderr
    found: dict[str, Any] = json.loads(ran.stdout)
    return found


@pytest.mark.parametrize(("run", "expected"), EXPECTED.items(), ids=EXPECTED)
def test_verify_names_what_is_wrong(
    results: Path, transcript: Transcript, run: str, expected: tuple[str, str]
) -> None:
    """What was planted is what is named; what worked is not called good without a link."""
    ends = [results / f"{run}.{end}.txt" for end in ("client", "server")]
    text = "".join(file.read_text() for file in ends if file.exists())
    transcript.add(f"# {run}", text)
    transcript.run("verify", "judge", "--rate", "10", "-", text=text)
    judged = _judged(*(file for file in ends if file.exists()))
    assert (judged["verdict"], judged["code"]) == expected, text


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
