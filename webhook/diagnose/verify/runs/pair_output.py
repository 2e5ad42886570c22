"""What both ends of a pair printed, as one text: of each test the client's part, then the server's.

The ends print each command before what it says (`pair.sh`), and a test has the same port at both.
"""

from __future__ import annotations

import re
from typing import NamedTuple

_COMMAND = re.compile(r"\+ (ib_\w{1,20}) -d (\S{1,64}) -p (\d{1,5}) ")
_NOTE = "rdma-verify: "
_DEVICES = f"{_NOTE}devices"


class SectionOfTest(NamedTuple):
    """The lines of one test."""

    test: str
    device: str
    #: Of the text; 1 is the first line of all.
    lines: tuple[int, int]
    #: What `pair.sh` said of it, the client's first.
    notes: tuple[str, ...]


class PairLog(NamedTuple):
    """The logs of both ends as one."""

    text: str
    sections: tuple[SectionOfTest, ...]
    #: What `pair.sh` said of no test.
    notes: tuple[str, ...]


class _Part(NamedTuple):
    """The lines of one end on one test; those before any test have no command."""

    test: str
    device: str
    lines: list[str]


def pair_log(client: str, server: str) -> PairLog:
    """Join the logs of both ends."""
    ends = (_parts(client), _parts(server))
    lines = [line for parts in ends for line in parts[0].lines]
    notes = _notes(lines)
    sections: list[SectionOfTest] = []
    for port in sorted({port for parts in ends for port in parts if port}):
        found = [parts[port] for parts in ends if port in parts]
        said = [line for part in found for line in part.lines]
        span = (len(lines) + 1, len(lines) + len(said))
        sections.append(SectionOfTest(found[0].test, found[0].device, span, _notes(said)))
        lines += said
    return PairLog("".join(f"{line}\n" for line in lines), tuple(sections), notes)


def devices_in(log: str) -> list[str]:
    """Return the devices that an end found by itself."""
    found = (line for line in log.splitlines() if line.startswith(_DEVICES))
    return next(found, "").removeprefix(_DEVICES).split()


def _parts(log: str) -> dict[int, _Part]:
    """Return what was printed of each test by its port, and under 0 what stands before."""
    parts = {0: _Part("", "", [])}
    part = parts[0]
    for line in log.splitlines():
        if command := _COMMAND.match(line):
            part = parts.setdefault(int(command[3]), _Part(command[1], command[2], []))
        part.lines.append(line)
    return parts


def _notes(lines: list[str]) -> tuple[str, ...]:
    return tuple(line.removeprefix(_NOTE) for line in lines if line.startswith(_NOTE))
