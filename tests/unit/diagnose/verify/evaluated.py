"""Evaluations of texts, for tests."""

from __future__ import annotations

from collections.abc import Sequence

from webhook.diagnose.verify.evaluate import evaluate, read_benchmark_files
from webhook.diagnose.verify.results import BenchmarkResult, Evaluation, PortRate


def evaluated(*texts: str, rate: float | None = 100, hcas: Sequence[str] = ()) -> Evaluation:
    """Grade each text as a separate file, named a, b, c and so on."""
    names = [chr(ord("a") + index) for index in range(len(texts))]
    files = [
        file
        for name, text in zip(names, texts, strict=True)
        for file in read_benchmark_files(name, text)
    ]
    return evaluate(files, PortRate(rate, f"--rate {rate:g}") if rate else None, hcas)


def only_result(text: str, rate: float | None = 100) -> BenchmarkResult:
    """Grade a text with a single run or failure."""
    (result,) = evaluated(text, rate=rate).results
    return result
