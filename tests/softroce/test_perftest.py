"""`verify judge` on what real perftest says on a real verbs device, well and ill."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.softroce.kept import Transcript, rdma_webhook

#: The run → its level and its code. All runs have both ends on one machine, so that no speed
#: says anything of a link.
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
    assert (judged["level"], judged["code"]) == expected, text


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
    assert judged["results"][0]["gbps"] == pytest.approx(best, abs=0.02)


def test_json_that_is_none(results: Path) -> None:
    """The report file of this perftest has unquoted keys and trailing commas, and is read."""
    text = (results / "report.json").read_text()
    with pytest.raises(json.JSONDecodeError):
        json.loads(text)
    (result,) = _judged(results / "report.json")["results"]
    assert result["gbps"] > 0
