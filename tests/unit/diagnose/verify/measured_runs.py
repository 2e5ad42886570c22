"""Reports of runs, from outputs of perftest that are graded as in a run; for tests."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import permutations

from tests.unit.diagnose.tools.benchmarks.outputs import bandwidth, row
from webhook.diagnose.verify.evaluate import evaluate, read_benchmark_files
from webhook.diagnose.verify.results import NodePair, PairResult, PortRate, RunReport
from webhook.model.finding import Finding

#: The measured Gb/s, or the output of the program instead.
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
    findings: tuple[Finding, ...] = (),
) -> RunReport:
    """Return the report of a run on ports of 100 Gb/s."""
    measured_pairs = list(every_pair(nodes) if pairs is None else pairs)
    files = []
    for pair in measured_pairs:
        for device in devices:
            files += read_benchmark_files(" ".join(pair), _output(outcome(pair, device), device))
    results = evaluate(files, PortRate(100, "rateGbps 100 (fabric v100-ib)")).results
    pair_results = tuple(
        PairResult(
            pair,
            tuple(
                result.with_location("", pair)
                for result in results
                if result.finding.location.file == " ".join(pair)
            ),
        )
        for pair in measured_pairs
    )
    return RunReport(
        "verify-k7", "v100-ib", "registry.example/perftest", tuple(nodes), pair_results, findings
    )


def _output(outcome: Outcome, device: str) -> str:
    return outcome if isinstance(outcome, str) else bandwidth(row(outcome), device=device)
