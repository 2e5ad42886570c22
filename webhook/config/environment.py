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
from collections.abc import Callable, Iterator, Mapping
from os.path import commonprefix

from webhook.config.model import FabricEntry
from webhook.config.names import split_hca
from webhook.model.fabric import FabricEnv
from webhook.model.libraries import POD_SOURCES, VARIABLES, ValueSource

_DEFAULT_PREFIX = "mlx5"
_LETTERS_BEFORE_NUMBER = re.compile(r"[^0-9]*")


def fabric_env(fabric: FabricEntry) -> FabricEnv:
    """Render a fabric's environment; a name in the site's `env` keeps the value from there."""
    return FabricEnv(
        library_variables=tuple(
            pair for pair in library_variables(fabric) if pair[0] not in fabric.env
        ),
        ucx_devices="" if "UCX_NET_DEVICES" in fabric.env else ucx_devices(fabric),
        site_variables=tuple(fabric.env.items()),
    )


def library_variables(fabric: FabricEntry) -> Iterator[tuple[str, str]]:
    """Yield every variable that the fields imply, whether `env` has it or not."""
    for library, name, source in VARIABLES:
        if library in fabric.libraries and source not in POD_SOURCES:
            value = RENDER[source](fabric)
            if value:
                yield name, value


def nccl_ib_hca(fabric: FabricEntry) -> str:
    """Return the value of NCCL_IB_HCA; "" if no device is named, or none can be."""
    if not _has_stable_device_names(fabric):
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


def nvshmem_prefix(fabric: FabricEntry) -> str | None:
    """Return the common prefix of all device names, for NVSHMEM; None if they have none in common.

    A fabric without names has NVSHMEM's default. Exact names are in NVSHMEM_HCA_LIST too, so a
    prefix that more devices have does no harm.
    """
    if fabric.hca_prefixes:
        shortest = min(fabric.hca_prefixes, key=len)
        return (
            shortest if all(prefix.startswith(shortest) for prefix in fabric.hca_prefixes) else None
        )
    if all(name.startswith(_DEFAULT_PREFIX) for name in fabric.hcas):
        return _DEFAULT_PREFIX
    common = commonprefix([_without_port(name) for name in fabric.hcas])  # noqa: RUF071 - no paths, but names
    before = _LETTERS_BEFORE_NUMBER.match(common)
    return (before and before[0]) or common or None


def _nvshmem_prefix(fabric: FabricEntry) -> str:
    prefix = nvshmem_prefix(fabric) if _has_stable_device_names(fabric) else None
    return "" if prefix is None or prefix == _DEFAULT_PREFIX else prefix


def _nvshmem_hcas(fabric: FabricEntry) -> str:
    if fabric.exclude_hcas and _has_stable_device_names(fabric):
        return "^" + ",".join(":".join(hca.split(":")[:2]) for hca in fabric.exclude_hcas)
    return _with_ports(fabric)


def _mooncake_hcas(fabric: FabricEntry) -> str:
    names = fabric.hcas if _has_stable_device_names(fabric) else []
    return ",".join(dict.fromkeys(_without_port(name) for name in names))


def _ucx_pkey(fabric: FabricEntry) -> str:
    return "" if fabric.qos.pkey is None else f"0x{fabric.qos.pkey:04x}"


def _without_port(written: str) -> str:
    return written.partition(":")[0]


def _with_ports(fabric: FabricEntry) -> str:
    if not _has_stable_device_names(fabric):
        return ""
    split = filter(None, map(split_hca, fabric.hcas))
    return ",".join(f"{name}:{port or 1}" for name, port in split)


def _has_stable_device_names(fabric: FabricEntry) -> bool:
    """Return whether device names are the same in all of the fabric's pods."""
    return fabric.mode in ("shared-device", "host-network")


def _number(number: int | None) -> str:
    return "" if number is None else str(number)


#: The source in a row of VARIABLES → the function that renders it; "" without a value.
RENDER: Mapping[ValueSource, Callable[[FabricEntry], str]] = {
    "nccl hcas": nccl_ib_hca,
    "nvshmem prefix": _nvshmem_prefix,
    "nvshmem hcas": _nvshmem_hcas,
    "mooncake hcas": _mooncake_hcas,
    "traffic class": lambda fabric: _number(fabric.qos.traffic_class),
    "service level": lambda fabric: _number(fabric.qos.service_level),
    "fifo traffic class": lambda fabric: _number(fabric.qos.fifo_traffic_class),
    "gid index": lambda fabric: _number(fabric.qos.gid_index),
    "ucx pkey": _ucx_pkey,
}
