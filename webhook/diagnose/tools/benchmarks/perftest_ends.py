"""The addresses that perftest prints of its two ends, and whether they are one port.

A line for each queue pair, first the local ones and then the remote ones; on RoCE each is followed
by a line with the GID, since all LIDs are 0 there.
"""

from __future__ import annotations

import re

_ADDRESS = re.compile(r"(local|remote) address: {1,4}LID (0x[0-9a-fA-F]{1,8})?")
_GID = re.compile(r"GID: ((?:\d{1,3}:){15}\d{1,3})$")


class PerftestEnds:
    """The addresses of both ends, as far as they were read."""

    def __init__(self) -> None:
        self._side = ""
        self._lids: dict[str, set[str]] = {"local": set(), "remote": set()}
        self._gids: dict[str, set[str]] = {"local": set(), "remote": set()}

    def read(self, text: str) -> bool:
        """Take what a line says; return whether it says anything."""
        if address := _ADDRESS.search(text):
            self._side, lid = address[1], address[2]
            if lid and int(lid, 16):
                self._lids[self._side].add(lid)
            return True
        gid = _GID.search(text)
        if gid and self._side and gid[1].strip("0:"):
            self._gids[self._side].add(gid[1])
        return bool(gid)

    @property
    def same(self) -> bool | None:
        """Whether both ends have one address; None if the address of one is not known."""
        for seen in (self._gids, self._lids):
            if seen["local"] and seen["remote"]:
                return len(seen["local"] | seen["remote"]) == 1
        return None
