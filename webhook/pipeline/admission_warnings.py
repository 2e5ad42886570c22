"""Admission warnings: ASCII on a single line, at most 120 characters each, under 4096 in total.

The API server drops a warning with a control character, and truncates warnings once the total
exceeds 4096 runes (apiserver, endpoints/filters/warning.go).
"""

from __future__ import annotations

from collections.abc import Iterable

from webhook.decision.outcome import Outcome, Reason

LONGEST = 120
TOTAL = 4096
_MORE = "rdma.lab: more in annotation rdma.lab/status"


def single_lines(why: Reason | None, message: str, outcomes: Iterable[Outcome]) -> tuple[str, ...]:
    """Return the warnings of a decision, without duplicates, as far as there is room."""
    found = [f"rdma.lab: {why.code}: {message}"] if why is not None else []
    for outcome in outcomes:
        if outcome.status == "warned":
            where = f"{outcome.mutation} {outcome.container}".rstrip()
            found.append(f"rdma.lab: {where}: {outcome.message}")
    return _fitting(dict.fromkeys(_plain(line) for line in found)) if found else ()


def _plain(line: str) -> str:
    line = line[: LONGEST + 1]  # so that a long line is not searched to its end
    if not (line.isascii() and line.isprintable()):
        line = "".join(letter if " " <= letter <= "~" else "?" for letter in line)
    return line if len(line) <= LONGEST else line[: LONGEST - 3] + "..."


def _fitting(lines: Iterable[str]) -> tuple[str, ...]:
    fitting: list[str] = []
    room = TOTAL - len(_MORE) - 1
    for line in lines:
        room -= len(line)
        if room <= 0:
            return (*fitting, _MORE)
        fitting.append(line)
    return tuple(fitting)
