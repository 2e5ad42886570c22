"""The progress of a run, and the codes that its cases reached."""

from __future__ import annotations

import sys
from collections import Counter
from textwrap import fill
from time import monotonic

from tests.fuzz.check import TARGETS
from tests.fuzz.workers import Tally

_WIDTH = 110


class Progress:
    """One line of progress: on a terminal about every second, in a log every minute."""

    def __init__(self, cases: int) -> None:
        self._cases = cases
        self._started = self._reported = monotonic()
        self._terminal = sys.stderr.isatty()

    def report(self, tally: Tally) -> None:
        """Write the line if it is due."""
        now = monotonic()
        if now - self._reported < (1 if self._terminal else 60):
            return
        self._reported = now
        end = "\r" if self._terminal else "\n"
        print(self._line(tally, now), end=end, file=sys.stderr, flush=True)

    def end(self, tally: Tally) -> None:
        """Write the last line."""
        if self._terminal:
            print(file=sys.stderr)
        print(self._line(tally, monotonic()))

    def _line(self, tally: Tally, now: float) -> str:
        rate = tally.cases / max(now - self._started, 1e-3)
        broken = f"{sum(tally.broken.values())} break a law in {len(tally.broken)} ways"
        return f"fuzz: {tally.cases} of {self._cases} cases, {rate:.0f} cases/s, {broken}"


def table(tally: Tally) -> str:
    """Write how many cases of each target reached each code, and which codes were not reached."""
    lines: list[str] = []
    for name, cases in sorted(tally.targets.items()):
        lines.append(f"\n{name}: {cases} cases")
        reached = Counter(
            {code: count for (target, code), count in tally.codes.items() if target == name}
        )
        lines += _groups(reached)
        missing = sorted(TARGETS[name].expected - reached.keys())
        lines.append(_filled("not reached", missing) if missing else "  every code was reached")
    return "\n".join(lines)


def _groups(codes: Counter[str]) -> list[str]:
    """Write codes as `mutation: Code count, …`, one paragraph for each mutation."""
    groups: dict[str, list[str]] = {}
    for code, count in sorted(codes.items()):
        group, _, name = code.rpartition(": ")
        groups.setdefault(group or "as a whole", []).append(f"{name} {count}")
    return [_filled(group, counts) for group, counts in groups.items()]


def _filled(head: str, items: list[str]) -> str:
    text = f"{head}: {', '.join(items)}"
    return fill(text, _WIDTH, initial_indent="  ", subsequent_indent="    ", break_on_hyphens=False)
