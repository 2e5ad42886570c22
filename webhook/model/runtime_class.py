"""The container runtime that a pod asks for by `runtimeClassName`, as far as its name says.

A RuntimeClass names a handler of the node; its own name is the site's choice, but the installers
of gVisor and Kata Containers, and the clouds, use names that say what it is.
"""

from __future__ import annotations

import re
from typing import Any

#: `gvisor` (GKE Sandbox, gvisor.dev), `runsc`, and either with a suffix.
_GVISOR = re.compile(r"(gvisor|runsc)([.-].*)?")
#: `kata`, `kata-qemu-nvidia-gpu`, … (kata-deploy); `kata-vm-isolation`, `kata-cc-isolation` (AKS).
_KATA = re.compile(r"kata([.-].*)?")
_LONGEST_NAME = 253  # a DNS subdomain


def is_gvisor(name: Any) -> bool:
    """Return whether a pod with this runtimeClassName runs in gVisor, which has no RDMA devices."""
    return _matches(_GVISOR, name)


def is_kata(name: Any) -> bool:
    """Return whether a pod with this runtimeClassName runs in a Kata virtual machine.

    RDMA works there only with a NIC that is passed through (VFIO), which no pod field shows.
    """
    return _matches(_KATA, name)


def _matches(names: re.Pattern[str], name: Any) -> bool:
    return (
        isinstance(name, str) and len(name) <= _LONGEST_NAME and names.fullmatch(name) is not None
    )
