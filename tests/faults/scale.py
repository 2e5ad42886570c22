"""How often and how long: short with every `make test`, long with `make test-soak` (SOAK=1)."""

from __future__ import annotations

import os
from dataclasses import dataclass

#: Pods created in a second while something is broken.
RATE = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Scale:
    """The numbers in which the two differ."""

    #: Upgrades, one after the other.
    restarts: int
    #: Pods at least, where none may be lost.
    pods: int
    #: Rotations of the CA.
    rotations: int
    #: Whether the end of the previous CA is waited for: the 90 s of idle connections, and more.
    retired: bool
    #: Whether etcd is also kept from running, besides being stopped.
    frozen: bool
    #: Seconds without etcd, without the API server, without the kubelet.
    gone: float
    #: Seconds that pods are created after something is repaired.
    after: float
    #: Idle connections, to each replica; the same number half-way through a handshake, and slow.
    idle: int
    slow: int
    #: Seconds of abuse.
    abuse: float
    #: Whether the kubelet is left to look at a changed ConfigMap when it likes: a minute or two.
    patient: bool
    #: Namespaces that get a label and a pod at once.
    labels: int


SHORT = Scale(
    restarts=1,
    pods=1_000,
    rotations=1,
    retired=False,
    frozen=False,
    gone=4.0,
    after=1.5,
    idle=500,
    slow=100,
    abuse=4.0,
    patient=False,
    labels=3,
)
SOAK = Scale(
    restarts=5,
    pods=5_000,
    rotations=2,
    retired=True,
    frozen=True,
    gone=30.0,
    after=20.0,
    idle=1_000,
    slow=500,
    abuse=60.0,
    patient=True,
    labels=50,
)
SCALE = SOAK if os.environ.get("SOAK") else SHORT
