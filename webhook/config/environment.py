"""Render a fabric's fields as environment variables.

NCCL_IB_HCA has three forms (NCCL's env.rst): `=mlx5_0,mlx5_1:1` is exact, `^=mlx5_bond_0` means
all but these, and `ibp` is a prefix. UCX_NET_DEVICES always needs the port. NVSHMEM_HCA_LIST takes
names with or without port, all of them excluded after a `^`; NVSHMEM leaves out every device whose
name does not begin with NVSHMEM_HCA_PREFIX, `mlx5` by default (its documentation of environment
variables; 3.4.5 or newer). MC_MS_FILTERS lists names without ports (Mooncake's topology discovery).
NCCL_IB_PKEY is never set: NCCL takes it as an index into the port's table (`pkey_index` of
ibv_qp_attr), while UCX_IB_PKEY is the key itself.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from os.path import commonprefix

from webhook.config.model import FabricEntry
from webhook.config.names import split_hca
from webhook.model.fabric import EnvPairs, FabricEnv

#: Field of `qos` → the variable of each library.
_QOS = {
    "traffic_class": {
        "nccl": "NCCL_IB_TC",
        "ucx": "UCX_IB_TRAFFIC_CLASS",
        "nvshmem": "NVSHMEM_IB_TRAFFIC_CLASS",
    },
    "service_level": {"nccl": "NCCL_IB_SL", "ucx": "UCX_IB_SL", "nvshmem": "NVSHMEM_IB_SL"},
    "fifo_traffic_class": {"nccl": "NCCL_IB_FIFO_TC"},
    "gid_index": {
        "nccl": "NCCL_IB_GID_INDEX",
        "ucx": "UCX_IB_GID_INDEX",
        "nvshmem": "NVSHMEM_IB_GID_INDEX",
        "mooncake": "MC_GID_INDEX",
    },
}
_DEFAULT_PREFIX = "mlx5"
_BEFORE_NUMBER = re.compile(r"[^0-9]*")


def fabric_env(fabric: FabricEntry) -> FabricEnv:
    """Render a fabric's environment; a name in the site's `env` keeps the value from there."""
    return FabricEnv(
        nccl=_of(fabric, "nccl"),
        ucx=_of(fabric, "ucx"),
        nvshmem=_of(fabric, "nvshmem"),
        mooncake=_of(fabric, "mooncake"),
        ucx_devices="" if "UCX_NET_DEVICES" in fabric.env else ucx_devices(fabric),
        site=tuple(fabric.env.items()),
    )


def rendered(fabric: FabricEntry) -> Iterator[tuple[str, str]]:
    """Yield every variable that the fields imply, whether `env` has it or not."""
    for library in ("nccl", "ucx", "nvshmem", "mooncake"):
        if library in fabric.libraries:
            yield from _library(fabric, library)


def nccl_ib_hca(fabric: FabricEntry) -> str:
    """Return the value of NCCL_IB_HCA; "" if no device is named, or none can be."""
    if not _names_devices(fabric):
        return ""
    if fabric.hcas:
        return "=" + ",".join(fabric.hcas)
    if fabric.exclude_hcas:
        return "^=" + ",".join(fabric.exclude_hcas)
    return ",".join(fabric.hca_prefixes)


def ucx_devices(fabric: FabricEntry) -> str:
    """Return the devices as `mlx5_0:1,mlx5_1:1`, from exact names only."""
    if "ucx" not in fabric.libraries:
        return ""
    return _with_ports(fabric)


def _of(fabric: FabricEntry, library: str) -> EnvPairs:
    if library not in fabric.libraries:
        return ()
    return tuple(pair for pair in _library(fabric, library) if pair[0] not in fabric.env)


def _library(fabric: FabricEntry, library: str) -> Iterator[tuple[str, str]]:
    if library == "nccl" and nccl_ib_hca(fabric):
        yield "NCCL_IB_HCA", nccl_ib_hca(fabric)
    if library == "nvshmem":
        yield from _nvshmem(fabric)
    if library == "mooncake" and fabric.hcas and _names_devices(fabric):
        yield "MC_MS_FILTERS", ",".join(dict.fromkeys(_bare(name) for name in fabric.hcas))
    for field, variables in _QOS.items():
        value = getattr(fabric.qos, field)
        if value is not None and library in variables:
            yield variables[library], str(value)
    if library == "ucx" and fabric.qos.pkey is not None:
        yield "UCX_IB_PKEY", f"0x{fabric.qos.pkey:04x}"


def nvshmem_prefix(fabric: FabricEntry) -> str | None:
    """Return what the names of all devices begin with, for NVSHMEM; None if nothing does.

    Exact names are in NVSHMEM_HCA_LIST too, so a prefix that more devices have does no harm.
    """
    if fabric.hca_prefixes:
        shortest = min(fabric.hca_prefixes, key=len)
        return shortest if all(one.startswith(shortest) for one in fabric.hca_prefixes) else None
    if all(name.startswith(_DEFAULT_PREFIX) for name in fabric.hcas):
        return _DEFAULT_PREFIX
    common = commonprefix([_bare(name) for name in fabric.hcas])  # noqa: RUF071 - no paths, but names
    before = _BEFORE_NUMBER.match(common)
    return (before and before[0]) or common or None


def _nvshmem(fabric: FabricEntry) -> Iterator[tuple[str, str]]:
    prefix = nvshmem_prefix(fabric) if _names_devices(fabric) else None
    if prefix is not None and prefix != _DEFAULT_PREFIX:
        yield "NVSHMEM_HCA_PREFIX", prefix
    listed = _with_ports(fabric)
    if fabric.exclude_hcas and _names_devices(fabric):
        listed = "^" + ",".join(":".join(one.split(":")[:2]) for one in fabric.exclude_hcas)
    if listed:
        yield "NVSHMEM_HCA_LIST", listed


def _bare(written: str) -> str:
    return written.partition(":")[0]


def _with_ports(fabric: FabricEntry) -> str:
    if not _names_devices(fabric):
        return ""
    split = filter(None, map(split_hca, fabric.hcas))
    return ",".join(f"{name}:{port or 1}" for name, port in split)


def _names_devices(fabric: FabricEntry) -> bool:
    """Return whether device names are the same in all of the fabric's pods."""
    return fabric.mode in ("shared-device", "host-network")
