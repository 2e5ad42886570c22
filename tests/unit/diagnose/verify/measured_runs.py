"""Reports of runs, judged from outputs of perftest as a run judges them; for tests."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import permutations

from tests.unit.diagnose.tools.benchmarks.outputs import bandwidth, row
from webhook.diagnose.verify.evaluate import assess, judged_files
from webhook.diagnose.verify.results import NodePair, PairResult, PortRate, Remark, RunReport

#: Gb/s that were measured, or what the program wrote instead.
Outcome = float | str
NO_MEMORY = "Couldn't allocate MR\nfailed to create mr\n Couldn't create IB resources\n"


def every_pair(nodes: Sequence[str]) -> list[NodePair]:
    """Return all ordered pairs."""
    return [NodePair(*pair) for pair in permutations(nodes, 2)]


def measured_run(
    nodes: Sequence[str],
    outcome: Callable[[NodePair, str], Outcome],
    *,
    pairs: Iterable[NodePair] | None = None,
    devices: Sequence[str] = ("mlx5_0",),
    remarks: tuple[Remark, ...] = (),
) -> RunReport:
    """Return the report of a run on ports of 100 Gb/s."""
    wanted = list(every_pair(nodes) if pairs is None else pairs)
    files = []
    for pair in wanted:
        for device in devices:
            files += judged_files(" ".join(pair), _output(outcome(pair, device), device))
    found = assess(files, PortRate(100, "rateGbps: 100 of fabric v100-ib")).judgements
    results = (
        PairResult(pair, tuple(one for one in found if one.file == " ".join(pair)))
        for pair in wanted
    )
    return RunReport(
        "verify-k7", "v100-ib", "registry.example/perftest", tuple(nodes), tuple(results), remarks
    )


def _output(outcome: Outcome, device: str) -> str:
    return outcome if isinstance(outcome, str) else bandwidth(row(outcome), device=device)
