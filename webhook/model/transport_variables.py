"""Settings in a container's own variables or command that keep its traffic off RDMA.

Each function checks one variable and returns the value to blame, or "". `user_env` is the
container's env: name → value, None for a value that only the kubelet can determine.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from itertools import starmap
from typing import NamedTuple

IB_HCA = "NCCL_IB_HCA"
#: A container's env, as above.
UserEnv = Mapping[str, str | None]
#: The numbers that NCCL reads: strtoll with base 0; it ignores anything else (misc/param.cc).
_NUMBER = re.compile(r"\s*[+-]?(?:0[xX][0-9a-fA-F]{1,16}|[0-9]{1,20})")


def nccl_ib_disabled(user_env: UserEnv) -> str:
    """Return the value of NCCL_IB_DISABLE if it turns RDMA off."""
    value = user_env.get("NCCL_IB_DISABLE") or ""
    return value if _NUMBER.fullmatch(value) and value.strip("+-xX0 \t\n\r\v\f") else ""


def nccl_net_socket(user_env: UserEnv) -> str:
    """Return the value of NCCL_NET if it is the socket transport, in any letter case."""
    value = user_env.get("NCCL_NET") or ""
    return value if value.lower() == "socket" else ""


def nccl_ib_hca_not_of_fabric(user_env: UserEnv, fabric_value: str | None) -> str:
    """Return the value of NCCL_IB_HCA if it selects no device of the fabric.

    `fabric_value` is the fabric's own value; None or "" if the fabric names no devices.
    """
    value = user_env.get(IB_HCA) or ""
    return value if value and fabric_value and selects_none(value, fabric_value) else ""


def ucx_tls_without_rdma(user_env: UserEnv) -> str:
    """Return the value of UCX_TLS if it leaves no RDMA transport."""
    value = user_env.get("UCX_TLS") or ""
    return value if value and not allows_rdma(value) else ""


#: Libfabric's providers without RDMA, and those that only add to another one, or stay in a node.
_TCP_PROVIDERS = frozenset({"net", "sockets", "tcp", "udp"})
_NEUTRAL_PROVIDERS = frozenset({"ofi_mrail", "ofi_rxd", "ofi_rxm", "shm"})
_MAX_PROVIDERS_LENGTH = 4096  #: characters that are read; libfabric has about thirty providers


def provider_without_rdma(user_env: UserEnv, name: str) -> str:
    """Return the value of a variable with libfabric's providers if none of them has RDMA.

    It is a list, separated by commas; `tcp;ofi_rxm` is a provider over another. A leading `^`
    excludes the listed ones (libfabric, fi_info(1) and src/fabric.c).
    """
    value = user_env.get(name) or ""
    listed = value[:_MAX_PROVIDERS_LENGTH].lower().replace(";", ",").split(",")
    providers = {provider.strip() for provider in listed} - _NEUTRAL_PROVIDERS
    return value if providers and providers <= _TCP_PROVIDERS else ""


#: The variables that choose NIXL's backend in SGLang and TensorRT-LLM (SGLang 0.5,
#: srt/environ.py; TensorRT-LLM 1.0, docs/source/features/disagg-serving.md).
NIXL_BACKENDS = ("SGLANG_DISAGGREGATION_NIXL_BACKEND", "TRTLLM_NIXL_KVCACHE_BACKEND")


def nixl_backend(user_env: UserEnv) -> tuple[str, str]:
    """Return the variable that gives NIXL another backend than UCX, and its value, or two "".

    Several backends are separated by commas: as long as UCX is one, it is the one for the network.
    """
    for name in NIXL_BACKENDS:
        value = user_env.get(name) or ""
        if value and "UCX" not in value.upper().split(","):
            return name, value
    return "", ""


def mooncake_tcp(user_env: UserEnv, command: str) -> str:
    """Return the setting that makes Mooncake use TCP, as it stands in env or in the command.

    Mooncake checks only whether MC_FORCE_TCP is set (transfer_engine_impl.cpp); `mooncake_tcp` is
    SGLang's name for that.
    """
    if "MC_FORCE_TCP" in user_env:
        return f"MC_FORCE_TCP={user_env['MC_FORCE_TCP'] or ''}"
    chosen = _MOONCAKE_TCP.search(command)
    if chosen:
        return " ".join(chosen.group().split())
    protocol = user_env.get("MOONCAKE_PROTOCOL") or ""
    return f"MOONCAKE_PROTOCOL={protocol}" if protocol.lower() == "tcp" else ""


_MOONCAKE_TCP = re.compile(
    r"--disaggregation-transfer-backend[=\s]++mooncake_tcp\b"
    r"|\"(?:mooncake_)?protocol\"\s*+:\s*+\"tcp\"|--(?:mooncake-)?protocol[=\s]++tcp\b"
)
_NAMES = re.compile(r"[A-Za-z][\w.-]*(?::\d+)*(?:,[A-Za-z][\w.-]*(?::\d+)*)*")
#: The characters of a reference to a variable, replaced by such as a name may have.
_REFERENCE_AS_NAME = str.maketrans("$()", "X--")
#: Words in place of a list of devices.
_ANY_DEVICE = frozenset({"all", "auto", "auto-discovery"})


def lists_no_device_of(value: str, fabric_value: str | None) -> bool:
    """Return whether a list of devices certainly has no device of the fabric.

    It is the value of UCX_NET_DEVICES and of others with exact names, each with an optional port.
    `fabric_value` is the fabric's NCCL_IB_HCA. Return False for patterns, exclusions and JSON.
    """
    devices = value[:_MAX_HCA_LIST_LENGTH].replace(" ", "")
    if "$(" in devices:  # a reference that the kubelet did not expand: no device has such a name
        devices = devices.translate(_REFERENCE_AS_NAME)
    if not fabric_value or devices.lower() in _ANY_DEVICE or not _NAMES.fullmatch(devices):
        return False
    return selects_none(f"={devices}", fabric_value)


# NCCL_IB_HCA: the RDMA devices that a value selects, compared with a fabric's devices.
#
# A value is a list of names, each with an optional port; they are prefixes, or exact names after
# `=`, and `^` excludes them (NCCL's env.rst; parseStringList and matchIfList in misc/utils.cc).
# What follows the port does not matter here.

_MAX_HCA_LIST_LENGTH = (
    4096  # characters that are read: NCCL takes at most 32 devices of 64 characters
)
#: A port as NCCL reads it, with atoi: "2", " 2:0:1".
_PORT = re.compile(r"\s*+0*+([0-9]++)")
#: The ports of a device that is listed without one: any.
_ANY_PORT = ""


class _Filter(NamedTuple):
    ports: dict[str, set[str]]  #: name → its ports, or _ANY_PORT
    exact: bool
    exclude: bool

    def selects(self, name: str, ports: set[str]) -> bool:
        """Return whether it may select one of these ports of a device."""
        names = [name] if self.exact else [name[:end] for end in range(len(name) + 1)]
        listed = set[str]().union(*(self.ports.get(name, ()) for name in names))
        if self.exclude:
            return _ANY_PORT not in listed and not ports <= listed
        return bool(listed) and (_ANY_PORT in listed | ports or not listed.isdisjoint(ports))


def selects_none(value: str, fabric_value: str) -> bool:
    """Return whether a value of NCCL_IB_HCA certainly selects no device of a fabric.

    `fabric_value` is the fabric's own value of NCCL_IB_HCA. Return False if uncertain.
    """
    user, fabric = _read(value), _read(fabric_value)
    if not user.ports or not fabric.ports:
        return False  # NCCL then selects all devices
    if fabric.exact and not fabric.exclude:
        return not any(starmap(user.selects, fabric.ports.items()))
    if user.exclude:
        return False
    if fabric.exclude:
        return user.exact and not any(starmap(fabric.selects, user.ports.items()))
    prefixes = tuple(fabric.ports)
    return not any(
        name.startswith(prefixes) or (not user.exact and prefix.startswith(name))
        for name in user.ports
        for prefix in prefixes
    )


def _read(value: str) -> _Filter:
    listed = value[:_MAX_HCA_LIST_LENGTH].removeprefix("^")
    ports: dict[str, set[str]] = {}
    for item in listed.removeprefix("=").split(","):
        name, _, port = item.partition(":")
        if name:
            ports.setdefault(name, set()).add(_port(port))
    return _Filter(ports, listed.startswith("="), value.startswith("^"))


def _port(written: str) -> str:
    number = _PORT.match(written)
    return number[1] if number else _ANY_PORT


# UCX_TLS: whether the transports that it selects include one that uses an RDMA device.
#
# UCX documents the aliases (`ib`, `rc`, `ud_x`, …); ucp_context.c, `ucp_tl_aliases`, lists the
# transports of each. A leading `^` excludes the listed transports from all transports.

_RC, _UD, _DC = ("rc_verbs", "rc_mlx5"), ("ud_verbs", "ud_mlx5"), ("dc_mlx5",)
#: The transports that use an HCA, without those of one cloud or one card (`srd`, `gga_mlx5`).
_COMMON_TRANSPORTS = frozenset({*_RC, *_UD, *_DC})
_ALIASES = {
    "all": _COMMON_TRANSPORTS,
    "ib": _COMMON_TRANSPORTS,
    "rc": frozenset(_RC),
    "rc_v": frozenset({"rc_verbs"}),
    "rc_x": frozenset({"rc_mlx5"}),
    "ud": frozenset(_UD),
    "ud_v": frozenset({"ud_verbs"}),
    "ud_x": frozenset({"ud_mlx5"}),
    "dc": frozenset(_DC),
    "dc_x": frozenset(_DC),
}
_RDMA = frozenset({*_COMMON_TRANSPORTS, "srd", "gga_mlx5"})
#: Characters that are read; UCX has about thirty names for transports.
_MAX_TRANSPORT_LIST_LENGTH = 4096


def allows_rdma(tls: str) -> bool:
    """Return whether a value of UCX_TLS leaves a transport that uses an RDMA device."""
    read = tls[:_MAX_TRANSPORT_LIST_LENGTH]
    named = frozenset[str]().union(*map(_transports, read.removeprefix("^").split(",")))
    return not named >= _COMMON_TRANSPORTS if read.startswith("^") else bool(named)


def _transports(written: str) -> frozenset[str]:
    """Return the RDMA transports that one name selects: an alias, a transport, or a glob.

    A backslash in front of a name means that it is not an alias.
    """
    name = written.strip()
    if name in _ALIASES:
        return _ALIASES[name]
    stem, star, _ = name.removeprefix("\\").partition("*")
    return frozenset(
        transport
        for transport in _RDMA
        if transport == stem or (star and transport.startswith(stem))
    )
