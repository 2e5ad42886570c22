"""Which variables a container on a fabric should have, given those that it has.

Used by `env`, which writes them, and by `config-files`, whose /etc/nccl.conf
carries the NCCL ones to processes that sshd starts.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import NamedTuple

from webhook.fabric.records import EnvPairs, Fabric, Fabrics
from webhook.pod.container_env import entry

NCCL_SOCKET = "NCCL_SOCKET_IFNAME"
GLOO_SOCKET = "GLOO_SOCKET_IFNAME"
UCX_DEVICES = "UCX_NET_DEVICES"
_SOCKETS = (NCCL_SOCKET, GLOO_SOCKET)


class Plan(NamedTuple):
    """What a container gets that has none of the names; the same for all such containers."""

    pairs: EnvPairs
    #: As items of `env`. Shared by pods: a draft never edits a value that was put in.
    entries: tuple[dict[str, str], ...]
    #: The names that make a container another case.
    names: frozenset[str]
    listed: str


@lru_cache(maxsize=64)
def plan_for(fabric: Fabric, *, host_network: bool) -> Plan:
    """Work out once what most containers on a fabric get."""
    pairs = wanted_env(fabric, {}, host_network=host_network)
    names = [name for name, _ in pairs]
    return Plan(
        pairs,
        tuple(entry(name, value) for name, value in pairs),
        frozenset({*names, NCCL_SOCKET, GLOO_SOCKET}),
        ", ".join(names),
    )


def wanted_env(fabric: Fabric, own: Mapping[str, str | None], *, host_network: bool) -> EnvPairs:
    """List all variables of the fabric for a container whose env is `own`.

    Names in `own` are listed too, with the fabric's value: the caller compares.
    """
    env = fabric.env
    libraries = fabric.libraries
    interface = fabric.host_socket_interface if host_network else fabric.socket_interface
    wanted = list(env.nccl) if "nccl" in libraries else []
    site = env.site
    if site:
        site = _without_sockets(site, own)
        # The site's interface counts for UCX, as it will once it is read back as the pod's own.
        own = {**dict(site), **own}
    if interface is not None and NCCL_SOCKET not in own and GLOO_SOCKET not in own:
        if "nccl" in libraries:
            wanted.append((NCCL_SOCKET, interface))
        if "gloo" in libraries:
            wanted.append((GLOO_SOCKET, interface))
    if "ucx" in libraries:
        devices = _ucx_devices(env.ucx_devices, interface, own)
        if devices:
            wanted.append((UCX_DEVICES, devices))
        wanted += env.ucx
    if "nvshmem" in libraries:
        wanted += env.nvshmem
    return (*wanted, *site)


def site_names(fabrics: Fabrics) -> frozenset[str]:
    """Return the names that any fabric's own `env` writes: found in a pod, they prove nothing."""
    return frozenset(name for one in fabrics.fabrics.values() for name, _ in one.env.site)


def _without_sockets(site: EnvPairs, own: Mapping[str, str | None]) -> EnvPairs:
    """Leave out the group of socket names where the container has one of them itself."""
    if NCCL_SOCKET not in own and GLOO_SOCKET not in own:
        return site
    return tuple(pair for pair in site if pair[0] not in _SOCKETS or pair[0] in own)


def _ucx_devices(devices: str, interface: str | None, own: Mapping[str, str | None]) -> str:
    """Write UCX_NET_DEVICES: the HCAs and the IP interface, without which UCX has no TCP.

    "" without HCAs, and where the user's interface has no plain name: then nothing is right.
    """
    if not devices:
        return ""
    for name in _SOCKETS:
        if name in own:
            value = own[name]
            if value is None or value.startswith("^") or not value.strip("="):
                return ""
            interface = value.removeprefix("=")
            break
    return devices if interface is None else f"{devices},{interface}"


def conflicts(own: Mapping[str, str | None], wanted: EnvPairs, site: EnvPairs) -> Iterator[str]:
    """Say where a value of the user's differs from what the fabric needs, and stays.

    What the `site` merely wishes (NCCL_DEBUG) is no conflict when the user wants another.
    """
    for name, value in wanted:
        if name in own and own[name] != value and (name, value) not in site:
            yours = name if own[name] is None else f"{name}={own[name]}"
            yield f"kept your {yours}, where the fabric has {value}"


def allows_rdma(tls: str) -> bool:
    """Whether a value of UCX_TLS leaves a transport that uses an RDMA device.

    Source: UCX documentation, aliases of UCX_TLS; `^` names what to leave out.
    """
    names = tls[:_LONGEST_TLS].split(",")
    return tls.startswith("^") or any(item.strip().split("_")[0] in _RDMA_TLS for item in names)


_RDMA_TLS = ("all", "ib", "rc", "ud", "dc")
_LONGEST_TLS = 4096  # characters that are read; UCX has some thirty names for it
