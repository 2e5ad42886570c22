"""UCX_TLS: whether the transports that it selects include one that uses an RDMA device.

UCX documents the aliases (`ib`, `rc`, `ud_x`, …); ucp_context.c, `ucp_tl_aliases`, lists the
transports behind each. A leading `^` lists what to leave out of all transports.
"""

from __future__ import annotations

_RC, _UD, _DC = ("rc_verbs", "rc_mlx5"), ("ud_verbs", "ud_mlx5"), ("dc_mlx5",)
#: The transports that use an HCA, without those of one cloud or one card (`srd`, `gga_mlx5`).
_EVERYWHERE = frozenset({*_RC, *_UD, *_DC})
_ALIASES = {
    "all": _EVERYWHERE,
    "ib": _EVERYWHERE,
    "rc": frozenset(_RC),
    "rc_v": frozenset({"rc_verbs"}),
    "rc_x": frozenset({"rc_mlx5"}),
    "ud": frozenset(_UD),
    "ud_v": frozenset({"ud_verbs"}),
    "ud_x": frozenset({"ud_mlx5"}),
    "dc": frozenset(_DC),
    "dc_x": frozenset(_DC),
}
_RDMA = frozenset({*_EVERYWHERE, "srd", "gga_mlx5"})
#: Characters that are read; UCX has about thirty names for transports.
_LONGEST_TRANSPORT_LIST = 4096


def allows_rdma(tls: str) -> bool:
    """Return whether a value of UCX_TLS leaves a transport that uses an RDMA device."""
    read = tls[:_LONGEST_TRANSPORT_LIST]
    named = frozenset[str]().union(*map(_transports, read.removeprefix("^").split(",")))
    return not named >= _EVERYWHERE if read.startswith("^") else bool(named)


def _transports(written: str) -> frozenset[str]:
    """Return the RDMA transports that one name selects: an alias, a transport, or a glob.

    A backslash in front of a name says that it is not an alias.
    """
    name = written.strip()
    if name in _ALIASES:
        return _ALIASES[name]
    stem, star, _ = name.removeprefix("\\").partition("*")
    return frozenset(one for one in _RDMA if one == stem or (star and one.startswith(stem)))
