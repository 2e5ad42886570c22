"""The headers of `clush -b` and of dshbak, above an output that one or several machines have.

    ----------------
    gpu-[01-02]
    ----------------
    mlx5_0 port 1 ==> ibs1 (Up)

clush writes 15 dashes, and the number of machines behind their names: "gpu-[01-02] (2)"; dshbak
writes 16. Sources: ClusterShell, lib/ClusterShell/CLI/Display.py; pdsh, scripts/dshbak.in.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from webhook.diagnose.tools.observations import Line
from webhook.diagnose.tools.transcripts.node_ranges import unfold
from webhook.diagnose.tools.transcripts.segments import Sign

_RULE = re.compile(r"-{15,16}\s*")
_NAMES = re.compile(r"(\S{1,4000})(?: \(\d{1,6}\))?\s*", re.ASCII)
#: Machines times lines, so that a short text cannot stand for an endless one.
_MOST = 10_000_000


def find_folded_header(lines: Sequence[Line], at: int) -> Sign | None:
    """Find a header of three lines."""
    if not lines[at].text.startswith("---") or len(lines) < at + 3:
        return None
    rule, named, end = (line.text for line in lines[at : at + 3])
    names = _NAMES.fullmatch(named)
    if names is None or not _RULE.fullmatch(rule) or rule.strip() != end.strip():
        return None
    nodes = unfold(names[1])
    return Sign(nodes, at + 3) if 0 < len(nodes) * len(lines) <= _MOST else None
