"""Findings: what every tool reports, with one scale of levels.

check-config, discover, fabrics, verify and why use these records. A decision on a pod is not a
finding: it has reasons and outcomes (`webhook.model.decision`).
"""

from __future__ import annotations

from typing import Literal, NamedTuple, get_args

#: ok: good as it is. info: a fact. warning: works, but should be corrected. unsure: cannot be
#: determined. error: does not work.
Level = Literal["ok", "info", "warning", "unsure", "error"]
#: Ascending; the worst level of a report decides its exit code.
LEVELS: tuple[Level, ...] = get_args(Level)


class Location(NamedTuple):
    """The location of a finding: in a file, on nodes, or on a device."""

    #: As given on the command line, "<stdin>" for standard input; "" if not in a file.
    file: str = ""
    #: From 1; None if unknown.
    line: int | None = None
    #: From 1; only for text that is not YAML.
    column: int | None = None
    #: `fabrics[1].hcas[0]`; "" for a file as a whole.
    path: str = ""
    #: The affected nodes, in the order of the report; () for all, or if there are none.
    nodes: tuple[str, ...] = ()
    #: An RDMA device, such as "mlx5_0"; "" if there is none.
    device: str = ""


_NOWHERE = Location()


class Finding(NamedTuple):
    """A statement of a tool, with its code, its level and its remedy."""

    level: Level
    #: A stable word for programs; `rdma-webhook why CODE` explains it.
    code: str
    #: One or two sentences.
    text: str
    #: What to do, in one or two sentences; "" if no action is needed.
    remedy: str = ""
    location: Location = _NOWHERE


class Code(NamedTuple):
    """A code of findings with its meaning, for docs/codes.md and `rdma-webhook why CODE`."""

    code: str
    #: A sentence on when a finding has this code.
    meaning: str
    #: The remedy in general, as a sentence; "" if no action is needed.
    remedy: str = ""

    def finding(
        self, level: Level, text: str, remedy: str | None = None, location: Location = _NOWHERE
    ) -> Finding:
        """Return a finding with this code; `remedy` overrides the general one."""
        return Finding(level, self.code, text, self.remedy if remedy is None else remedy, location)


def severity(level: Level) -> int:
    """Return the position of a level in the scale, 0 for the best."""
    return LEVELS.index(level)
