"""What the caller of discover decides, since no tool says it."""

from __future__ import annotations

from typing import NamedTuple

from webhook.model.fabric import Mode


class Wishes(NamedTuple):
    """Decisions of the site."""

    #: None: what fits each fabric.
    mode: Mode | None = None
    #: Multus networks for RoCE in mode shared-device, one for each device.
    networks: tuple[str, ...] = ()
    #: The namespace of the pods, in which networks are made.
    namespace: str = "default"
    #: Whether the NicClusterPolicy installs NVIDIA's driver on the nodes.
    ofed: bool = False
