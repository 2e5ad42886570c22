"""Judge texts, for tests."""

from __future__ import annotations

from collections.abc import Sequence

from webhook.machine.measure.read_output import read_output
from webhook.verify.assessment import JudgedFile, assess
from webhook.verify.expectation import PortRate
from webhook.verify.judgement import Assessment, Judgement


def judged(*texts: str, rate: float | None = 100, hcas: Sequence[str] = ()) -> Assessment:
    """Judge each text as a file of its own, called a, b, c and so on."""
    files = [
        JudgedFile(chr(ord("a") + place), read_output(text), text.count("\n") + 1)
        for place, text in enumerate(texts)
    ]
    return assess(files, PortRate(rate, f"--rate {rate:g}") if rate else None, hcas)


def the_only(text: str, rate: float | None = 100) -> Judgement:
    """Judge a text with one run or failure."""
    (found,) = judged(text, rate=rate).judgements
    return found
