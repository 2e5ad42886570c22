"""NCCL_IB_HCA: which RDMA devices a value selects, compared with those of a fabric.

A value is a list of names with an optional port; they are prefixes, or exact names after `=`, and
after `^` they are left out (NCCL's env.rst; ports do not matter here).
"""

from __future__ import annotations

from typing import NamedTuple

_LONGEST_HCA_LIST = 4096  # characters that are read: NCCL takes at most 32 devices of 64 characters


class _Filter(NamedTuple):
    names: tuple[str, ...]
    exact: bool
    exclude: bool

    def selects(self, device: str) -> bool:
        found = device in self.names if self.exact else device.startswith(self.names)
        return found != self.exclude


def selects_none(value: str, fabrics: str) -> bool:
    """Return whether a value of NCCL_IB_HCA certainly selects no device of a fabric.

    `fabrics` is the fabric's own value of NCCL_IB_HCA. False if it cannot be known.
    """
    own, fabric = _read(value), _read(fabrics)
    if not own.names or not fabric.names:
        return False  # NCCL then selects all devices
    if fabric.exact and not fabric.exclude:
        return not any(map(own.selects, fabric.names))
    if own.exclude:
        return False
    if fabric.exclude:
        return own.exact and not any(map(fabric.selects, own.names))
    return not any(
        name.startswith(fabric.names) or (not own.exact and prefix.startswith(name))
        for name in own.names
        for prefix in fabric.names
    )


def _read(value: str) -> _Filter:
    listed = value[:_LONGEST_HCA_LIST].removeprefix("^")
    names = (item.partition(":")[0] for item in listed.removeprefix("=").split(","))
    return _Filter(tuple(filter(None, names)), listed.startswith("="), value.startswith("^"))
