"""Counts and durations: short in every `make test`, long in `make test-soak` (SOAK=1)."""

from __future__ import annotations

import os
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Scale:
    """The numbers that differ between the two scales."""

    #: Pods created per second while something is broken.
    rate: int
    #: Upgrades, one after another.
    restarts: int
    #: The least number of pods while certificates are exchanged.
    pods: int
    #: Rotations of the CA.
    rotations: int
    #: Whether to wait for the end of the previous CA: the 90 s of idle connections, and more.
    waits_for_retirement: bool
    #: Whether etcd is also frozen, besides being stopped.
    frozen: bool
    #: Seconds without etcd, without the API server, without the kubelet.
    outage: float
    #: Seconds for which pods are created after a repair.
    after_repair: float
    #: Connections to each replica: idle ones, as many half-way through a handshake, and slow ones.
    idle: int
    slow: int
    #: Seconds of abuse.
    abuse: float
    #: Namespaces that are labeled and get a pod at once.
    labels: int
    #: Pairs of changes of the configuration, and the seconds between the two of a pair.
    pairs: int
    pace: float
    #: Pods created per second meanwhile.
    changed: int


SHORT = Scale(
    rate=40,
    restarts=1,
    pods=400,
    rotations=1,
    waits_for_retirement=False,
    frozen=False,
    outage=4.0,
    after_repair=1.5,
    idle=500,
    slow=100,
    abuse=4.0,
    labels=3,
    pairs=4,
    pace=1.5,
    changed=20,
)
SOAK = Scale(
    rate=100,
    restarts=5,
    pods=5_000,
    rotations=2,
    waits_for_retirement=True,
    frozen=True,
    outage=30.0,
    after_repair=20.0,
    idle=1_000,
    slow=500,
    abuse=60.0,
    labels=50,
    pairs=100,
    pace=2.0,
    changed=100,
)
SCALE = SOAK if os.environ.get("SOAK") else SHORT
