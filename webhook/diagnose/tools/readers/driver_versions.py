"""Tell by a driver's version whether it is that of the kernel (inbox) or of NVIDIA (OFED)."""

from __future__ import annotations

import re

#: 24.10-0.7.0, with one number more in the name of the package.
_OFED = re.compile(r"(\d{1,2}\.\d{1,2}-\d{1,2}\.\d{1,2}\.\d{1,2})(?:\.\d{1,3})?", re.ASCII)
#: Linux, drivers/net/ethernet/mellanox/mlx5/core/mlx5_core.h, until 5.10: DRIVER_VERSION "5.0-0".
_INBOX = re.compile(r"\d\.\d-\d", re.ASCII)


def ofed_driver(version: str) -> str | None:
    """Return the driver that a version of OFED is, as a setting has it: "OFED 24.10-0.7.0"."""
    ofed = _OFED.fullmatch(version)
    return f"OFED {ofed[1]}" if ofed else None


def mlx5_driver(version: str) -> str | None:
    """Return the driver that a version of mlx5_core is; None if that is unknown."""
    return "inbox" if _INBOX.fullmatch(version) else ofed_driver(version)
