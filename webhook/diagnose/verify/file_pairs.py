"""A matrix from files: the outputs of pairs of nodes that a job of Slurm, say, has measured.

A file has a pair in its name, as from `verify run --logs`, or a line above each output:

    gpu-01_gpu-02.txt      # gpu-01 -> gpu-02
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from webhook.diagnose.verify.evaluate import grade_file, read_benchmark_files
from webhook.diagnose.verify.grade import NO_RESULT
from webhook.diagnose.verify.outliers import flag_outliers
from webhook.diagnose.verify.results import (
    BenchmarkResult,
    NodePair,
    PairResult,
    PortRate,
    RunReport,
)
from webhook.model.finding import Location

_NODE = r"[A-Za-z0-9](?:[A-Za-z0-9.-]{0,251}[A-Za-z0-9])?"
#: The names of nodes have no underscore (RFC 1123).
_FILE_NAME = re.compile(rf"({_NODE})(?:_to_|-to-|_)({_NODE})")
_ENDINGS = (".txt", ".log", ".out")
_PAIR_LINE = re.compile(rf"(?:#{{1,4}} {{0,4}})?({_NODE}) {{1,4}}(?:->|→) {{1,4}}({_NODE})")


class PairOutput(NamedTuple):
    """The output of a pair."""

    pair: NodePair
    file: str
    text: str
    #: The number of lines of the file above the text.
    lines_above: int = 0


def pair_outputs(file: str, text: str) -> list[PairOutput]:
    """Return the outputs in a file, in its order; [] if neither its name nor a line has a pair."""
    lines = text.split("\n")
    starts = [
        (number, NodePair(*match.groups()))
        for number, line in enumerate(lines)
        if (match := _PAIR_LINE.fullmatch(line.strip()))
    ]
    if not starts:
        pair = _pair_of_name(file)
        return [PairOutput(pair, file, text)] if pair else []
    ends = [number for number, _ in starts[1:]] + [len(lines)]
    return [
        PairOutput(pair, file, "\n".join(lines[start + 1 : end]), start + 1)
        for (start, pair), end in zip(starts, ends, strict=True)
    ]


def _pair_of_name(file: str) -> NodePair | None:
    name = file.rpartition("/")[2]
    for ending in _ENDINGS:
        name = name.removesuffix(ending)
    match = _FILE_NAME.fullmatch(name)
    return NodePair(*match.groups()) if match else None


def report_on_pairs(outputs: Iterable[PairOutput], rate: PortRate | None, fabric: str) -> RunReport:
    """Grade the outputs, each also by the other pairs."""
    graded = [(output, result) for output in outputs for result in _results(output, rate)]
    compared = flag_outliers([result for _, result in graded])
    results: dict[NodePair, list[BenchmarkResult]] = {}
    for (output, _), result in zip(graded, compared, strict=True):
        located = result.with_location(output.file, output.pair)
        results.setdefault(output.pair, []).append(located)
    nodes = dict.fromkeys(node for pair in results for node in pair)
    pairs = tuple(PairResult(pair, tuple(of_pair)) for pair, of_pair in results.items())
    return RunReport("files", fabric, "", tuple(nodes), pairs)


def _results(output: PairOutput, rate: PortRate | None) -> Iterator[BenchmarkResult]:
    """Yield the results of a pair, at least one."""
    results = [
        result
        for part in read_benchmark_files(output.file, output.text, output.lines_above)
        for result in grade_file(part, rate)
    ]
    text = "The output of this pair has no result."
    missing = NO_RESULT.finding("unsure", text, location=Location(output.file))
    yield from results or [BenchmarkResult(missing)]
