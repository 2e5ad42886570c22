"""The variables that a container on a fabric should have, given the variables it already has.

The mutation `env` sets them. The mutation `config-files` writes NCCL's to /etc/nccl.conf,
where processes that sshd starts can read them.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import NamedTuple

from webhook.model.fabric import (
    GLOO_SOCKET,
    NCCL_SOCKET,
    SOCKET_VARIABLES,
    CompiledConfiguration,
    EnvPairs,
    Fabric,
    ip_interfaces,
)
from webhook.model.libraries import VARIABLES, ValueSource
from webhook.model.pod.container import env_item
from webhook.model.transport_variables import allows_rdma

#: The remedy where envFrom, whose variables are unknown, may set a variable of ours.
CHECK_ENV_FROM = (
    "In env, set each variable that the webhook left out, unless a ConfigMap or Secret of envFrom "
    "sets it."
)

UCX_TLS = "UCX_TLS"
#: The lists of the interfaces that Open MPI may use.
OPEN_MPI_INTERFACE_VARIABLES = tuple(
    row.name for row in VARIABLES if row.source == "interfaces of mpi"
)
#: Their opposites: Open MPI aborts if it gets both.
EXCLUDE_VARIABLES = tuple(
    name.replace("_include", "_exclude") for name in OPEN_MPI_INTERFACE_VARIABLES
)


class EnvPlan(NamedTuple):
    """The variables for every container that has none of `names_that_change_it`."""

    settings: EnvPairs
    #: The pairs as items of `env`. Pods share them: a draft never edits a value put into it.
    env_items: tuple[dict[str, str], ...]
    #: A container that has any of these names needs its own plan.
    names_that_change_it: frozenset[str]
    names_text: str  #: the names of `settings`, as a message lists them


@lru_cache(maxsize=64)
def plan_for(fabric: Fabric, *, host_network: bool) -> EnvPlan:
    """Return the plan for most containers on a fabric, computed once for each kind of network."""
    settings = desired_env(fabric, {}, host_network=host_network)
    names = [name for name, _ in settings]
    return EnvPlan(
        settings,
        tuple(env_item(name, value) for name, value in settings),
        frozenset({*names, *SOCKET_VARIABLES, UCX_TLS, *EXCLUDE_VARIABLES}),
        ", ".join(names),
    )


def desired_env(
    fabric: Fabric,
    user_env: Mapping[str, str | None],
    *,
    host_network: bool,
    excludes_interfaces: bool = False,
) -> EnvPairs:
    """List the variables of the fabric for a container whose env is `user_env`.

    Names in `user_env` are included, with the fabric's value: the caller compares. An exception are
    SOCKET_VARIABLES: if `user_env` or the site's `env` has any, the fabric's own are left out; and
    if `user_env` has one, the site's value for the other is left out.
    `excludes_interfaces`: whether its command gives Open MPI a list of interfaces to exclude.
    """
    interface = fabric.host_socket_interface if host_network else fabric.socket_interface
    site_variables = fabric.env.site_variables
    if site_variables:
        site_variables = _without_sockets(site_variables, user_env)
        # UCX uses the site's interface too: a second call sees it in the container's `env`,
        # and must come to the same result.
        user_env = {**dict(site_variables), **user_env}
    mpi = not (host_network or excludes_interfaces) and _may_include(user_env)
    pod_values = _pod_values(fabric.env.ucx_devices, user_env, interface, mpi=mpi)
    names = {name for name, _ in site_variables}
    settings = ((name, pod_values.get(source, value)) for name, source, value in fabric.variables)
    return (*(pair for pair in settings if pair[1] and pair[0] not in names), *site_variables)


def _pod_values(
    devices: str, user_env: Mapping[str, str | None], interface: str | None, *, mpi: bool
) -> dict[ValueSource, str]:
    """Return the values that depend on the pod; `devices` are UCX's, `interface` the fabric's."""
    interfaces = ",".join(ip_interfaces(interface, user_env))
    ucx = devices and interfaces and _uses_rdma(user_env)
    return {
        "socket": "" if NCCL_SOCKET in user_env or GLOO_SOCKET in user_env else interface or "",
        "hcas and interfaces": f"{devices},{interfaces}" if ucx else "",
        "interfaces": interfaces,
        "interfaces of mpi": interfaces if mpi else "",
    }


def _may_include(user_env: Mapping[str, str | None]) -> bool:
    """Return whether Open MPI's TCP may be limited to interfaces: the user excludes none.

    Open MPI aborts if it gets both lists, or if an interface is absent, so the list is not set in
    the host's network, where nodes differ (opal/mca/btl/tcp; run with 4.1.4).
    """
    return not any(name in user_env for name in EXCLUDE_VARIABLES)


def own_variables_like_evidence_of_all(configuration: CompiledConfiguration) -> frozenset[str]:
    """Return the `own_variables_like_evidence` of all fabrics."""
    fabrics = configuration.fabrics.values()
    return frozenset[str]().union(*map(own_variables_like_evidence, fabrics))


def own_variables_like_evidence(fabric: Fabric) -> frozenset[str]:
    """Return the variables that look like evidence of a launcher or of Open MPI, but may be ours.

    They are the site's `env`, and Open MPI's lists of interfaces: an earlier call may have added
    them. So it may have added the fabric's other variables, but those resemble no such evidence;
    `launchers` itself ignores hcoll's.
    """
    names = frozenset(name for name, _ in fabric.env.site_variables)
    return names.union(OPEN_MPI_INTERFACE_VARIABLES) if "openmpi" in fabric.libraries else names


def _without_sockets(site_variables: EnvPairs, user_env: Mapping[str, str | None]) -> EnvPairs:
    """Drop the socket variables of the site that the container lacks, if it has one itself."""
    if NCCL_SOCKET not in user_env and GLOO_SOCKET not in user_env:
        return site_variables
    return tuple(
        pair for pair in site_variables if pair[0] not in SOCKET_VARIABLES or pair[0] in user_env
    )


def _uses_rdma(user_env: Mapping[str, str | None]) -> bool:
    """Return whether UCX may use RDMA in a container whose env is `user_env`.

    UCX applies UCX_NET_DEVICES to TCP as well: a list with HCAs and no IP interface leaves TCP
    without a device, and HCAs in the list are useless where UCX_TLS allows no RDMA.
    """
    tls = user_env.get(UCX_TLS)
    return not tls or allows_rdma(tls)


@lru_cache(maxsize=2)
def fabric_by_setting(configuration: CompiledConfiguration) -> Mapping[tuple[str, str], str]:
    """Map each (name, value) that a fabric writes, in either network, to the first such fabric.

    The site's `env` is left out, since users write the same (NCCL_DEBUG=INFO).
    """
    writers: dict[tuple[str, str], str] = {}
    for fabric in configuration.fabrics.values():
        for host_network in (False, True):
            for pair in desired_env(fabric, {}, host_network=host_network):
                if pair not in fabric.env.site_variables:
                    writers.setdefault(pair, fabric.name)
    return writers
