"""The IP interfaces by which the processes of a container reach their peers, by exact name.

UCX_NET_DEVICES, NVSHMEM and Open MPI need exact names. NCCL_SOCKET_IFNAME holds prefixes instead
(NCCL's env.rst): `eth` also means eth0, `=eth0` is exact, and `^docker` excludes. `lo` reaches no
other pod.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

NCCL_SOCKET = "NCCL_SOCKET_IFNAME"
GLOO_SOCKET = "GLOO_SOCKET_IFNAME"
SOCKETS = (NCCL_SOCKET, GLOO_SOCKET)

LOOPBACK = "lo"
_LONGEST = 15  # bytes: IFNAMSIZ without its final NUL
_MOST = 8  # interfaces; a longer list is not meant to name each


def ip_interfaces(interface: str | None, own: Mapping[str, str | None]) -> tuple[str, ...]:
    """Return the interfaces of a container whose env is `own`; () if no exact name is certain.

    `interface` is the fabric's. The user's NCCL_SOCKET_IFNAME takes precedence over it, then
    GLOO_SOCKET_IFNAME, which holds exact names.
    """
    for name in SOCKETS:
        if name in own:
            found = list(_named(own[name] or "", interface, exact=name == GLOO_SOCKET))
            return () if None in found else tuple(dict.fromkeys(filter(None, found)))
    return () if interface is None or interface == LOOPBACK else (interface,)


def _named(written: str, interface: str | None, *, exact: bool) -> Iterator[str | None]:
    """Yield the interfaces in a list of names; None for one that is not an exact name."""
    exact = exact or written.startswith("=")
    names = written.removeprefix("=").split(",", _MOST)
    for name in names if len(names) <= _MOST else [""]:
        if not exact and interface is not None and name and interface.startswith(name):
            yield interface
        elif not _is_plain(name) or not (exact or name[-1].isdigit() or name == LOOPBACK):
            yield None
        elif name != LOOPBACK:
            yield name


def _is_plain(name: str) -> bool:
    """Return whether a text may be the name of an interface, and of only one."""
    return bool(name) and len(name) <= _LONGEST and not any(char in "^:/*% " for char in name)
