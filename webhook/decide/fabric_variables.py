"""The variables that a container on a fabric should have, given those it has already.

The mutation `env` sets them. The mutation `config-files` writes NCCL's to /etc/nccl.conf,
which carries them to processes that sshd starts.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import NamedTuple

from webhook.model.container import entry
from webhook.model.fabric import (
    GLOO_SOCKET,
    NCCL_SOCKET,
    SOCKETS,
    EnvPairs,
    Fabric,
    FabricEnv,
    Fabrics,
    ip_interfaces,
)
from webhook.model.transport_variables import allows_rdma

UCX_DEVICES = "UCX_NET_DEVICES"
UCX_TLS = "UCX_TLS"
_NVSHMEM_SOCKET = "NVSHMEM_BOOTSTRAP_UID_SOCK_IFNAME"
#: Open MPI's TCP between ranks, and between its daemons: until version 4, and from version 5 on.
OPEN_MPI = (
    "OMPI_MCA_btl_tcp_if_include",
    "OMPI_MCA_oob_tcp_if_include",
    "PRTE_MCA_prte_if_include",
)
#: Their opposites: Open MPI aborts if it gets both.
EXCLUDING = tuple(name.replace("_include", "_exclude") for name in OPEN_MPI)


class Plan(NamedTuple):
    """What a container gets that has none of `names`; the same for all such containers."""

    pairs: EnvPairs
    #: The pairs as items of `env`. Pods share them: a draft never edits a value put into it.
    entries: tuple[dict[str, str], ...]
    #: A container that has any of these names needs its own plan.
    names: frozenset[str]
    listed: str  #: the names of `pairs`, as a message lists them


@lru_cache(maxsize=64)
def plan_for(fabric: Fabric, *, host_network: bool) -> Plan:
    """Compute, once per fabric and kind of network, what most containers on it get."""
    pairs = wanted_env(fabric, {}, host_network=host_network)
    names = [name for name, _ in pairs]
    return Plan(
        pairs,
        tuple(entry(name, value) for name, value in pairs),
        frozenset({*names, *SOCKETS, UCX_TLS, *EXCLUDING}),
        ", ".join(names),
    )


def wanted_env(
    fabric: Fabric,
    own: Mapping[str, str | None],
    *,
    host_network: bool,
    excludes_interfaces: bool = False,
) -> EnvPairs:
    """List all variables of the fabric for a container whose env is `own`.

    Names in `own` are listed too, with the fabric's value: the caller compares.
    `excludes_interfaces`: its command gives Open MPI a list of interfaces to leave out.
    """
    interface = fabric.host_socket_interface if host_network else fabric.socket_interface
    site = fabric.env.site
    if site:
        site = _without_sockets(site, own)
        # UCX uses the site's interface too: a second review finds it in the pod's own `env`,
        # and must come to the same result.
        own = {**dict(site), **own}
    addresses = ip_interfaces(interface, own)
    socket = interface if NCCL_SOCKET not in own and GLOO_SOCKET not in own else None
    each = _by_library(fabric.env, own, socket or "", addresses)
    wanted = [pair for library, pairs in each if library in fabric.libraries for pair in pairs]
    if "openmpi" in fabric.libraries and not (host_network or excludes_interfaces):
        wanted += _open_mpi(addresses, own)
    named = {name for name, _ in site}
    return (*(pair for pair in wanted if pair[0] not in named), *site)


def _by_library(
    env: FabricEnv, own: Mapping[str, str | None], socket: str, addresses: tuple[str, ...]
) -> Iterator[tuple[str, EnvPairs]]:
    """Yield what each library gets; `socket` is "" where the pod has its own choice."""
    devices = env.ucx_devices if addresses and _uses_rdma(own) else ""
    yield "nccl", (*env.nccl, *_set(NCCL_SOCKET, socket))
    yield "gloo", _set(GLOO_SOCKET, socket)
    yield "ucx", (*_set(UCX_DEVICES, devices and ",".join((devices, *addresses))), *env.ucx)
    yield "nvshmem", (*env.nvshmem, *_set(_NVSHMEM_SOCKET, ",".join(addresses)))
    yield "mooncake", env.mooncake


def _set(name: str, value: str) -> EnvPairs:
    return ((name, value),) if value else ()


def _open_mpi(addresses: tuple[str, ...], own: Mapping[str, str | None]) -> EnvPairs:
    """Return what keeps Open MPI's TCP on the interfaces, unless the user leaves out others.

    Open MPI aborts if it gets both lists, and if an interface is absent: not in the host's network,
    where nodes differ (opal/mca/btl/tcp; run with 4.1.4).
    """
    if not addresses or any(name in own for name in EXCLUDING):
        return ()
    return tuple((name, ",".join(addresses)) for name in OPEN_MPI)


def site_names(fabrics: Fabrics) -> frozenset[str]:
    """Return the names that any fabric may write; in a pod they are evidence of nothing."""
    return frozenset[str]().union(*map(names_without_evidence, fabrics.fabrics.values()))


def names_without_evidence(fabric: Fabric) -> frozenset[str]:
    """Return the names of the site's `env`, and of Open MPI's variables that the fabric writes."""
    names = frozenset(name for name, _ in fabric.env.site)
    return names.union(OPEN_MPI) if "openmpi" in fabric.libraries else names


def _without_sockets(site: EnvPairs, own: Mapping[str, str | None]) -> EnvPairs:
    """Leave out the socket names that the container lacks, if it has the other one of them."""
    if NCCL_SOCKET not in own and GLOO_SOCKET not in own:
        return site
    return tuple(pair for pair in site if pair[0] not in SOCKETS or pair[0] in own)


def _uses_rdma(own: Mapping[str, str | None]) -> bool:
    """Return whether UCX may use RDMA in a container whose env is `own`.

    UCX applies UCX_NET_DEVICES to TCP as well: a list with HCAs and no IP interface leaves TCP
    without a device, and one with HCAs is of no use where UCX_TLS allows no RDMA.
    """
    tls = own.get(UCX_TLS)
    return not tls or allows_rdma(tls)


@lru_cache(maxsize=2)
def written_by(fabrics: Fabrics) -> Mapping[tuple[str, str], str]:
    """Return who writes which value: (name, value) → the first fabric, in either network.

    What a site's own `env` says is left out, since users write the same (NCCL_DEBUG=INFO).
    """
    found: dict[tuple[str, str], str] = {}
    for fabric in fabrics.fabrics.values():
        for host_network in (False, True):
            for pair in wanted_env(fabric, {}, host_network=host_network):
                if pair not in fabric.env.site:
                    found.setdefault(pair, fabric.name)
    return found
