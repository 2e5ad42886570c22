"""The type of a row: a kind of log line, with its meaning and a remedy."""

from __future__ import annotations

import re
from typing import Literal, NamedTuple, get_args

from webhook.model.finding import Finding, Level

LineKind = Literal["transport", "setting", "slower", "failure"]
Layer = Literal["link", "gid", "memory", "verbs", "socket", "ucx", "mpi", "nccl"]
#: Lowest first.
LAYERS: tuple[Layer, ...] = get_args(Layer)

#: The source of several rows: NCCL's transport over verbs.
NET_IB_SOURCE = "nccl, src/transport/net_ib"
#: The remedy of several rows: the limit on locked memory is too low.
LIFT_MEMLOCK = (
    "Run the process as root with the capability IPC_LOCK. If that is not possible, ask the "
    "cluster administrator to raise the limit on locked memory, for example with "
    "LimitMEMLOCK=infinity in the systemd unit of the node's containerd."
)
#: The meaning of two rows, and their remedy.
KILLED_BY_SIGNAL = (
    "A process was killed by SIGKILL. A possible cause is that the container's memory, including "
    "registered memory, exceeded the memory limit."
)
CHECK_OOM_KILLED = (
    "Check whether `kubectl describe pod` shows OOMKilled. If so, raise or remove the container's "
    "memory limit or, if the node ran out of memory, request as much memory as the container uses."
)


class KnownLine(NamedTuple):
    """A kind of log line, with its meaning and a remedy."""

    code: str
    kind: LineKind
    layer: Layer
    #: A part of every such line, which makes the search fast.
    clue: str
    #: The pattern that identifies the line; None if the clue is enough.
    pattern: re.Pattern[str] | None
    #: A line as the program writes it.
    example: str
    #: The meaning, as a sentence.
    meaning: str
    #: What to do, as a sentence; "" if no action is needed.
    remedy: str
    source: str
    #: For a transport: whether it is RDMA. None for other kinds of line.
    rdma: bool | None = None
    #: Whether another failure, often at the other end, always comes before this one.
    consequence: bool = False

    def finding(self, level: Level, text: str, remedy: str | None = None) -> Finding:
        """Return a finding with this code; `remedy` overrides that of the row."""
        return Finding(level, self.code, text, self.remedy if remedy is None else remedy)

    def fits(self, line: str) -> bool:
        """Return whether a line of a log is of this kind."""
        if self.clue not in line:
            return False
        return self.pattern is None or self.pattern.search(line) is not None
