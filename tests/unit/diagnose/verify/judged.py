"""Judgements on texts, for tests."""

from __future__ import annotations

from collections.abc import Sequence

from webhook.diagnose.verify.evaluate import assess, read_benchmark_files
from webhook.diagnose.verify.results import BenchmarkResult, Evaluation, PortRate


def judged(*texts: str, rate: float | None = 100, hcas: Sequence[str] = ()) -> Evaluation:
    """Judge each text as a separate file, named a, b, c and so on."""
    names = [chr(ord("a") + index) for index in range(len(texts))]
    files = [
        file
        for name, text in zip(names, texts, strict=True)
        for file in read_benchmark_files(name, text)
    ]
    return assess(files, PortRate(rate, f"--rate {rate:g}") if rate else None, hcas)


def the_only(text: str, rate: float | None = 100) -> BenchmarkResult:
    """Judge a text with one run or failure."""
    (judgement,) = judged(text, rate=rate).judgements
    return judgement
