"""Warn of variables of the user's that stay, and that keep traffic off the fabric."""

from __future__ import annotations

from collections.abc import Mapping

from webhook.decide import transport_variables
from webhook.decide.draft import Draft
from webhook.decide.fabric_variables import written_by
from webhook.decide.scope import Launcher, Scope, Target
from webhook.model.decision import Reason
from webhook.model.fabric import EnvPairs

USER_VALUE = Reason("UserValue", "The user's value differs from the fabric's, and is kept.")
OTHER_FABRIC = Reason(
    "OtherFabricsValue",
    "The value is that of another fabric, or of the other network, and is kept.",
)
HCA_ELSEWHERE = Reason(
    "NcclIbHcaElsewhere",
    "NCCL_IB_HCA selects no device of the fabric: NCCL would use sockets.",
    rdma="no",
)
IB_DISABLED = Reason("NcclIbDisabled", "The user's NCCL_IB_DISABLE=1 turns RDMA off.", rdma="no")
NET_SOCKET = Reason("NcclNetSocket", "The user's NCCL_NET=Socket turns RDMA off.", rdma="no")
UCX_TLS = Reason("UcxTlsWithoutRdma", "The user's UCX_TLS leaves no RDMA transport.")
NIXL = Reason(
    "NixlWithoutRdma",
    "The user's UCX_TLS leaves no RDMA transport to NIXL, which uses UCX.",
    rdma="no",
)
#: The names that the functions below look at, besides those of the fabric.
_TELLING = frozenset({"NCCL_IB_DISABLE", "NCCL_NET", "UCX_TLS"})
USER_REASONS = (USER_VALUE, OTHER_FABRIC, HCA_ELSEWHERE, IB_DISABLED, NET_SOCKET, UCX_TLS, NIXL)


def warn_user_values(
    draft: Draft,
    scope: Scope,
    container: Target | Launcher,
    own: Mapping[str, str | None],
    wanted: EnvPairs,
) -> None:
    """Warn of a container's `own` variables, where the fabric has `wanted`."""
    _warn_kept(draft, scope, container.name, own, wanted)
    if not _TELLING.isdisjoint(own):
        _warn_switches(draft, container.name, own)
        _warn_transports(draft, scope, container, own)


def _warn_kept(
    draft: Draft, scope: Scope, where: str, own: Mapping[str, str | None], wanted: EnvPairs
) -> None:
    """Warn of each value that is kept and differs from the fabric's.

    A value that the site merely prefers (NCCL_DEBUG, say) does not count: users may differ.
    """
    assert scope.fabric is not None
    for name, value in wanted:
        if name not in own or own[name] == value:
            continue
        whose, reason = _whose(scope, name, own[name])
        if name == transport_variables.IB_HCA and transport_variables.nccl_ib_hca_elsewhere(
            own, value
        ):
            message = f"{whose} selects no device of fabric {scope.fabric.name}, which has {value}"
            draft.warned(where, HCA_ELSEWHERE, message)
        elif (name, value) not in scope.fabric.env.site:
            draft.warned(where, reason, f"kept {whose}; the fabric has {value}")


def _warn_switches(draft: Draft, where: str, own: Mapping[str, str | None]) -> None:
    disabled, socket = (
        transport_variables.nccl_ib_disabled(own),
        transport_variables.nccl_net_socket(own),
    )
    if disabled:
        draft.warned(where, IB_DISABLED, f"your NCCL_IB_DISABLE={disabled} turns RDMA off")
    if socket:
        draft.warned(where, NET_SOCKET, f"your NCCL_NET={socket} turns RDMA off")


def _warn_transports(
    draft: Draft, scope: Scope, container: Target | Launcher, own: Mapping[str, str | None]
) -> None:
    tls = transport_variables.ucx_tls_without_rdma(own)
    if tls and transport_variables.uses_nixl(scope.commands.text(container.path), own):
        message = f"NIXL uses UCX, and your UCX_TLS={tls} leaves no RDMA transport"
        draft.warned(container.name, NIXL, message)
    elif tls:
        message = f"your UCX_TLS={tls} leaves no RDMA transport"
        draft.warned(container.name, UCX_TLS, message)


def _whose(scope: Scope, name: str, value: str | None) -> tuple[str, Reason]:
    """Say whose a value is: the user's, or a fabric's that an earlier preview wrote to the file."""
    if value is None:
        return f"your {name}", USER_VALUE
    fabric = written_by(scope.fabrics).get((name, value))
    if fabric is None:
        return f"your {name}={value}", USER_VALUE
    return f"{name}={value} of fabric {fabric}", OTHER_FABRIC
