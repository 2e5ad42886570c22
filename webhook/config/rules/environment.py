"""Rules for environment variables: socket interfaces and the site's `env`.

Sources: NCCL's env.rst, which distinguishes system configuration from debugging, and its
misc/param.cc (nccl.conf); UCX's uct/ib configuration.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from webhook.config.environment import library_variables, nccl_ib_hca, ucx_devices
from webhook.config.model import FabricEntry
from webhook.config.names import KNOWN_VARIABLES, OneLetterIndex
from webhook.config.rules.rule import Violation, rule
from webhook.model import quantity
from webhook.model.fabric import LOOPBACK, SOCKET_VARIABLES, ip_interfaces
from webhook.model.libraries import VARIABLES
from webhook.model.quoting import quoted
from webhook.model.transport_variables import allows_rdma

#: NCCL truncates names and values of configuration files to this length (misc/param.cc).
_MAX_NCCL_BYTES = 1023
#: The number of characters shown of a value that is too long.
_MAX_SHOWN = 40
_MAX_HCAS = 32
#: The variables that name HCAs; `qos` sets all other variables that fields imply.
_HCA_VARIABLES = frozenset(
    variable.name
    for variable in VARIABLES
    if variable.source in ("nccl hcas", "nvshmem prefix", "nvshmem hcas", "mooncake hcas")
)
#: From env.rst, "Debugging" ("should generally not be set in production"), and causes of hangs.
_DEBUGGING_VARIABLES = frozenset(
    {
        "NCCL_ALGO",
        "NCCL_BUFFSIZE",
        "NCCL_CHECKS_DISABLE",
        "NCCL_COLLNET_ENABLE",
        "NCCL_CUMEM_ENABLE",
        "NCCL_CUMEM_HOST_ENABLE",
        "NCCL_DMABUF_ENABLE",
        "NCCL_IB_CUDA_SUPPORT",
        "NCCL_IB_MERGE_NICS",
        "NCCL_LAUNCH_MODE",
        "NCCL_MAX_NCHANNELS",
        "NCCL_MIN_NCHANNELS",
        "NCCL_MNNVL_ENABLE",
        "NCCL_NET_GDR_LEVEL",
        "NCCL_NET_GDR_READ",
        "NCCL_NTHREADS",
        "NCCL_NVLS_ENABLE",
        "NCCL_P2P_DISABLE",
        "NCCL_P2P_LEVEL",
        "NCCL_PROTO",
        "NCCL_SHM_DISABLE",
    }
)
#: The size of the /dev/shm that containerd gives every container.
_SHM_DEFAULT = "64Mi"
_VARIABLE_INDEX = OneLetterIndex(KNOWN_VARIABLES)
_BY_LOWERCASE_NAME = {name.lower(): name for name in KNOWN_VARIABLES}


@rule("error", "Remove the variable from env.", tolerates_other_errors=True)
def rdma_switched_off(fabric: FabricEntry) -> Iterator[Violation]:
    """Reject a fabric that sets NCCL_IB_DISABLE to anything but 0, or NCCL_NET to Socket, in `env`.

    An error: either setting switches RDMA off, which contradicts the fabric.
    """
    off = fabric.env.get("NCCL_IB_DISABLE", "0").strip()
    if off != "0":
        yield Violation(
            ("env", "NCCL_IB_DISABLE"),
            f"{quoted(off)} switches RDMA off",
            "Remove NCCL_IB_DISABLE from env.",
        )
    if fabric.env.get("NCCL_NET", "").strip().lower() == "socket":
        yield Violation(
            ("env", "NCCL_NET"), "'Socket' switches RDMA off", "Remove NCCL_NET from env."
        )


@rule(
    "warning",
    "Remove the variable from env.",
    tolerates_other_errors=True,
)
def debugging_variables(fabric: FabricEntry) -> Iterator[Violation]:
    """Warn about a fabric that sets, in `env`, a variable that NCCL documents for debugging only.

    A warning: forcing a level or disabling a path can make jobs hang or run slowly, but a site may
    have measured that it helps.
    """
    for name in fabric.env:
        if name in _DEBUGGING_VARIABLES:
            yield Violation(
                ("env", name), f"{name} is for debugging, and NCCL chooses better values itself"
            )


@rule("warning", "Correct the name of the variable in env.", tolerates_other_errors=True)
def misspelled_variables(fabric: FabricEntry) -> Iterator[Violation]:
    """Warn about a fabric that sets, in `env`, a variable whose name is close to a known name.

    A warning: the names differ by one letter, or only by case. No library reads `NCCL_DEUBG` or
    `nccl_debug`; but a site's own program may.
    """
    for name in fabric.env:
        if name in KNOWN_VARIABLES:
            continue
        if intended := _BY_LOWERCASE_NAME.get(name.lower()):
            yield Violation(("env", name), f"case matters (did you mean {intended}?)")
        elif near := _VARIABLE_INDEX.neighbor_of(name.upper()):
            yield Violation(("env", name), f"no library reads this name (did you mean {near}?)")


@rule(
    "error",
    "Set NCCL_IB_TIMEOUT to a number from 1 to 31, or remove it: NCCL's default is 20.",
    tolerates_other_errors=True,
)
def infinite_timeout(fabric: FabricEntry) -> Iterator[Violation]:
    """Reject a fabric that sets NCCL_IB_TIMEOUT in `env` to a value outside the range 1 to 31.

    An error: with 0 or a value above 31, NCCL waits forever, so a broken link hangs the job.
    """
    written = fabric.env.get("NCCL_IB_TIMEOUT")
    if written is not None and not re.fullmatch(r"0?[1-9]|[12][0-9]|3[01]", written):
        yield Violation(
            ("env", "NCCL_IB_TIMEOUT"), f"with {quoted(written)}, a broken link may hang the job"
        )


@rule("error", "Remove the variable from env, and keep the field.")
def sockets_twice(fabric: FabricEntry) -> Iterator[Violation]:
    """Reject a fabric that sets the socket interface both in a field and by a variable in `env`.

    An error: it is not clear whether `socketInterface` or the variable (NCCL_SOCKET_IFNAME,
    GLOO_SOCKET_IFNAME) is meant.
    """
    if _names_interface(fabric):
        for name in SOCKET_VARIABLES:
            if name in fabric.env:
                yield Violation(("env", name), f"socketInterface also sets {name}")


@rule(
    "warning",
    "Instead of the variable in env, set socketInterface (and, for pods with hostNetwork, "
    "hostSocketInterface), from which all libraries get their interface.",
)
def sockets_in_env(fabric: FabricEntry) -> Iterator[Violation]:
    """Warn about a fabric that sets NCCL_SOCKET_IFNAME or GLOO_SOCKET_IFNAME in `env`.

    A warning: with `env`, pods with hostNetwork get the same interface name as other pods, and UCX
    gets none.
    """
    if not _names_interface(fabric):
        for name in SOCKET_VARIABLES:
            if name in fabric.env:
                yield Violation(
                    ("env", name),
                    f"UCX does not read {name}, and pods with hostNetwork get the same interface",
                )


def _names_interface(fabric: FabricEntry) -> bool:
    """Return whether the file itself names a socket interface."""
    return "socket_interface" in fabric.model_fields_set or bool(fabric.host_socket_interface)


@rule(
    "warning",
    "Set socketInterface to eth0 or, in mode host-network, hostSocketInterface to an interface of "
    "the node.",
)
def ucx_without_interface(fabric: FabricEntry) -> Iterator[Violation]:
    """Warn about a fabric that lists `hcas` and the library `ucx`, but sets no socket interface.

    A warning: UCX_NET_DEVICES, which UCX applies to TCP as well, is then not written, and UCX uses
    any device.
    """
    key, interface = "socketInterface", fabric.socket_interface or None
    if fabric.mode == "host-network":
        key, interface = "hostSocketInterface", fabric.host_socket_interface
    if "UCX_NET_DEVICES" in fabric.env or interface == LOOPBACK or not ucx_devices(fabric):
        return  # naming.interface_names reports `lo`
    if not ip_interfaces(interface, fabric.env):
        yield Violation(
            (key,),
            f"without {key}, UCX_NET_DEVICES is not written, since UCX's TCP needs an interface",
            f"Write {'an interface of the node' if key[0] == 'h' else 'eth0'}.",
        )


@rule(
    "warning",
    "Add the network interface, such as eth0, to UCX_NET_DEVICES, or set hcas and socketInterface "
    "(in mode host-network, hostSocketInterface) in place of the variable.",
)
def ucx_devices_without_interface(fabric: FabricEntry) -> Iterator[Violation]:
    """Warn about a fabric that sets UCX_NET_DEVICES in `env` to a list of HCAs alone.

    A warning: UCX applies it to TCP as well, which then has no device, and a process that needs TCP
    dies with "no usable transports/devices".
    """
    written = fabric.env.get("UCX_NET_DEVICES", "all")
    if all(":" in item for item in written.split(",")):
        yield Violation(
            ("env", "UCX_NET_DEVICES"),
            f"{quoted(written)} leaves UCX's TCP connections without an interface",
        )


@rule("warning", "Remove openmpi from `libraries`.")
def openmpi_on_host(fabric: FabricEntry) -> Iterator[Violation]:
    """Warn about a fabric that has mode `host-network`, where its library `openmpi` is unused.

    A warning: the webhook does not set Open MPI's variables there, since mpirun would abort on a
    node without the interface.
    """
    if "openmpi" in fabric.libraries and fabric.mode == "host-network":
        index = fabric.libraries.index("openmpi")
        yield Violation(("libraries", index), "openmpi has no effect on pods with hostNetwork")


@rule(
    "warning",
    "If the value in env is not intended, remove the variable from env; otherwise, remove the "
    "field that sets it, unless other variables depend on the field.",
)
def rendered_twice(fabric: FabricEntry) -> Iterator[Violation]:
    """Warn about a fabric that overrides in `env` a variable that `qos` or a list of HCAs sets.

    A warning: the value in `env` wins, so `hcas`, `excludeHcas`, `hcaPrefixes` or the field of
    `qos` has no effect on that library.
    """
    for name, value in library_variables(fabric):
        if name in fabric.env and fabric.env[name] != value:
            yield Violation(
                ("env", name),
                f"{quoted(fabric.env[name])} overrides {quoted(value)}, the value from "
                f"{_field_of(name, fabric)}",
            )


def _field_of(name: str, fabric: FabricEntry) -> str:
    """Return the field that sets a library's variable."""
    if name not in _HCA_VARIABLES:
        return "qos"
    if fabric.exclude_hcas:
        return "excludeHcas"
    return "hcas" if fabric.hcas else "hcaPrefixes"


@rule(
    "error",
    "Write the value as a single line of at most 1023 bytes, without leading or trailing spaces.",
)
def nccl_values(fabric: FabricEntry) -> Iterator[Violation]:
    """Reject a fabric that sets an NCCL variable to a value that /etc/nccl.conf cannot hold.

    An error: NCCL truncates a value of more than 1023 bytes, and a value in the file cannot have
    several lines, or spaces around it.
    """
    for name, value in fabric.env.items():
        if not name.startswith("NCCL_"):
            continue
        if len(value.encode()) > _MAX_NCCL_BYTES or value != value.strip() or "\n" in value:
            yield Violation(
                ("env", name),
                f"{quoted(value[:_MAX_SHOWN])} cannot be a value in /etc/nccl.conf",
            )
    if len(nccl_ib_hca(fabric).encode()) > _MAX_NCCL_BYTES:
        yield Violation(
            ("hcas",),
            f"NCCL_IB_HCA would be longer than {_MAX_NCCL_BYTES} bytes",
            "List fewer HCAs.",
        )


@rule(
    "error",
    "List at most 32 devices, without spaces, such as =mlx5_0,mlx5_1 (to exclude: ^=mlx5_0), or "
    "set hcas instead.",
    tolerates_other_errors=True,
)
def nccl_ib_hca_value(fabric: FabricEntry) -> Iterator[Violation]:
    """Reject a fabric that sets NCCL_IB_HCA in `env` to a list that NCCL would misread.

    An error: NCCL then matches no device and silently falls back to sockets.
    """
    value = fabric.env.get("NCCL_IB_HCA")
    if value is None:
        return
    listed = value.removeprefix("^").removeprefix("=").split(",")
    if len(listed) > _MAX_HCAS or not all(
        re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_.-]*(:[0-9]+){0,3}", item) for item in listed
    ):
        yield Violation(
            ("env", "NCCL_IB_HCA"),
            f"{quoted(value)} is not a list that NCCL reads",
        )


@rule("warning", "Add an RDMA transport, such as rc, to UCX_TLS in env, or remove the variable.")
def ucx_without_rdma(fabric: FabricEntry) -> Iterator[Violation]:
    """Warn about a fabric that sets UCX_TLS in `env` to a list without an RDMA transport.

    A warning: UCX then uses TCP, but a site may want that for UCX alone.
    """
    written = fabric.env.get("UCX_TLS", "all")
    if "ucx" in fabric.libraries and not allows_rdma(written):
        yield Violation(("env", "UCX_TLS"), f"{quoted(written)} has no RDMA transport")


@rule(
    "warning",
    "Set sharedMemory to a larger size, such as 64Gi, or remove the field.",
    tolerates_other_errors=True,
)
def small_shared_memory(fabric: FabricEntry) -> Iterator[Violation]:
    """Warn about a fabric that sets `sharedMemory` to less than 64Mi, the default size of /dev/shm.

    A warning: less is too little for anything that needs RDMA; `64m` and `64` are typing errors.
    """
    written = fabric.shared_memory
    try:
        small = 0 < quantity.parse(written) < quantity.parse(_SHM_DEFAULT)
    except ValueError:
        return  # naming.shared_memory reports it
    if small and written is not None:
        yield Violation(
            ("sharedMemory",),
            f"{quoted(written)} is less than the default of every container, {_SHM_DEFAULT} "
            "(did you mean Gi?)",
        )
