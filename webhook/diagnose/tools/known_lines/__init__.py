"""Log lines of NCCL, UCX, Open MPI and perftest, with their meaning and a remedy.

This is the only table of these texts: `rdma-webhook why --logs` searches for them, and
docs/troubleshooting.md is made from it. Every row has a line as the program writes it, which a test
reads, and the source of the text.

    transport  the network that carries the traffic, with the flag `rdma`
    setting    a setting in the environment that turns RDMA off
    slower     RDMA works, but not at full speed
    failure    a program, a transfer or a device fails

`layer` is the part of the stack where the failure is. A failure in a low layer makes the higher
ones fail too, so the lowest is named first:

    link    the port and its cable        gid     the address of the port in this network namespace
    memory  registering memory            verbs   the device, its libraries, its transfers
    socket  the TCP connection that two processes use to find each other
    ucx     UCX                           mpi     the launcher of the ranks
    nccl    NCCL
"""

from __future__ import annotations

from webhook.diagnose.tools.known_lines.failures import FAILURES
from webhook.diagnose.tools.known_lines.known_line import LAYERS, KnownLine, Layer, LineKind
from webhook.diagnose.tools.known_lines.networks import SETTINGS, SLOWER, TRANSPORTS

__all__ = [
    "FAILURES",
    "KNOWN_LINES",
    "LAYERS",
    "SETTINGS",
    "SLOWER",
    "TRANSPORTS",
    "KnownLine",
    "Layer",
    "LineKind",
]

KNOWN_LINES: tuple[KnownLine, ...] = (*TRANSPORTS, *SETTINGS, *SLOWER, *FAILURES)
