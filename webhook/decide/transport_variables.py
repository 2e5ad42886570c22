"""What in a container's own variables, or in its command, keeps its traffic off RDMA.

Each function looks at one thing and returns what is to blame, "" if nothing is. `own` is the
container's env: name → value, None for a value that only the kubelet knows.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from webhook.decide.nccl_ib_hca import selects_none
from webhook.decide.ucx_tls import allows_rdma

IB_HCA = "NCCL_IB_HCA"
#: A container's env, as above.
Own = Mapping[str, str | None]
#: What NCCL reads as a number: strtoll with base 0; it ignores anything else (misc/param.cc).
_NUMBER = re.compile(r"\s*[+-]?(?:0[xX][0-9a-fA-F]{1,16}|[0-9]{1,20})")
_COMMENT = "#"


def nccl_ib_disabled(own: Own) -> str:
    """Return the value of NCCL_IB_DISABLE if it turns RDMA off."""
    value = own.get("NCCL_IB_DISABLE") or ""
    return value if _NUMBER.fullmatch(value) and value.strip("+-xX0 \t\n\r\v\f") else ""


def nccl_net_socket(own: Own) -> str:
    """Return the value of NCCL_NET if it is the socket transport, in any case of letters."""
    value = own.get("NCCL_NET") or ""
    return value if value.lower() == "socket" else ""


def nccl_ib_hca_elsewhere(own: Own, fabrics: str | None) -> str:
    """Return the value of NCCL_IB_HCA if it selects no device of the fabric.

    `fabrics` is the fabric's own value; None or "" if the fabric names no devices.
    """
    value = own.get(IB_HCA) or ""
    return value if value and fabrics and selects_none(value, fabrics) else ""


def ucx_tls_without_rdma(own: Own) -> str:
    """Return the value of UCX_TLS if it leaves no RDMA transport."""
    value = own.get("UCX_TLS") or ""
    return value if value and not allows_rdma(value) else ""


def uses_nixl(command: str, own: Own) -> bool:
    """Return whether a container moves data by NIXL, whose default backend is UCX.

    Its command says so (`--disaggregation-transfer-backend nixl`, `NixlConnector`), or its env
    (`VLLM_NIXL_*`, a connector's JSON). An image may have NIXL and not use it.
    """
    if any("NIXL" in name or "NixlConnector" in (value or "") for name, value in own.items()):
        return True
    lowered = command.lower()
    return "nixl" in lowered and any(
        "nixl" in line.partition(_COMMENT)[0] for line in lowered.splitlines()
    )
