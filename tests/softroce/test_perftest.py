"""`verify judge` on real perftest's output on a real verbs device, with and without faults."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.softroce.kept import Transcript, rdma_webhook

#: The run → its level and its code. All runs have both ends on one machine, so that no speed
#: is evidence about a link.
EXPECTED = {
    "bandwidth": ("unsure", "Loopback"),
    "all-sizes": ("unsure", "Loopback"),
    "duration": ("unsure", "Loopback"),
    "both-ways": ("unsure", "Loopback"),
    "latency": ("unsure", "Loopback"),
    "other-namespace": ("unsure", "Loopback"),
    "other-device": ("error", "DeviceNotFound"),
    "port-down": ("error", "PortDown"),
    "empty-gid": ("error", "QueuePairRefused"),
    "no-ipc-lock": ("error", "PerftestNoMemory"),
    "killed": ("error", "ProcessKilled"),
    "no-server": ("error", "ServerUnreachable"),
    "firewall": ("error", "ServerUnreachable"),
}


@pytest.fixture(scope="module")
def results(experiment: Callable[[str, float], Path]) -> Path:
    """Run perftest in all these ways in one machine."""
    return experiment("perftest", 1800)


@pytest.fixture(scope="module")
def transcript() -> Transcript:
    """Keep the output of `verify judge` for them."""
    return Transcript("verdicts")


def _judged(*files: Path) -> dict[str, Any]:
    ran = rdma_webhook("verify", "judge", "--rate", "10", "-o", "json", *files)
    assert not ran.stderr, ran.stderr
    form: dict[str, Any] = json.loads(ran.stdout)
    return form


@pytest.mark.parametrize(("run", "expected"), EXPECTED.items(), ids=EXPECTED)
def test_verify_names_the_fault(
    results: Path, transcript: Transcript, run: str, expected: tuple[str, str]
) -> None:
    """The planted fault is named; a run that worked is not called good without a link."""
    ends = [results / f"{run}.{end}.txt" for end in ("client", "server")]
    text = "".join(file.read_text() for file in ends if file.exists())
    transcript.add(f"# {run}", text)
    transcript.run("verify", "judge", "--rate", "10", "-", text=text)
    judged = _judged(*(file for file in ends if file.exists()))
    assert (judged["level"], judged["code"]) == expected, text


@pytest.mark.parametrize("run", ["bandwidth", "both-ways", "all-sizes"])
def test_the_printed_speed_is_read(results: Path, run: str) -> None:
    """The largest average that perftest prints in Gb/s is read, by its message rate."""
    judged = _judged(results / f"{run}.client.txt")
    rows = [
        line.split()
        for line in (results / f"{run}.client.txt").read_text().splitlines()
        if line.strip()[:1].isdigit() and len(line.split()) == 5
    ]
    largest = max(float(row[3]) for row in rows)
    assert judged["results"][0]["gbps"] == pytest.approx(largest, abs=0.02)


def test_invalid_json_is_read(results: Path) -> None:
    """The report file of this perftest has unquoted keys and trailing commas, and is read."""
    text = (results / "report.json").read_text()
    with pytest.raises(json.JSONDecodeError):
        json.loads(text)
    (result,) = _judged(results / "report.json")["results"]
    assert result["gbps"] > 0
