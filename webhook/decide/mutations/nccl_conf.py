"""The text of /etc/nccl.conf, for all containers of a pod at once.

NCCL reads lines `NAME=VALUE` without trimming them, takes `#` as a comment only in the first
column, and cuts names and values at 1023 bytes (nccl/src/misc/param.cc). A value may begin with
`=`, as in `NCCL_IB_HCA==mlx5_0`.
"""

from __future__ import annotations

from collections.abc import Iterable

from webhook.decide.fabric_variables import wanted_env
from webhook.model.annotations import size_of
from webhook.model.container import env_of, literal
from webhook.model.fabric import Fabric
from webhook.model.interfaces import GLOO_SOCKET, NCCL_SOCKET
from webhook.model.path import Path
from webhook.model.pod import PodManifest

LONGEST = 1023


def nccl_conf(
    pod: PodManifest, paths: Iterable[Path], fabric: Fabric, *, host_network: bool
) -> tuple[str, list[str]]:
    """Return the text for the containers at `paths`, and the names of variables it leaves out.

    A variable in a container's `env` keeps its value from there. It is left out if the containers
    differ on it, if only the kubelet knows its value, or if the value does not fit on a line.
    """
    fabrics_own = _nccl(fabric, host_network=host_network)
    each = [_values(fabrics_own, fabric, env_of(pod, path)) for path in paths]
    lines: list[str] = []
    left_out: list[str] = []
    for name in dict.fromkeys(name for values in each for name in values):
        value, *others = {values.get(name) for values in each}
        if others or value is None or not _fits(value):
            left_out.append(name)
        else:
            lines.append(f"{name}={value}\n")
    return "".join(lines), left_out


def _nccl(fabric: Fabric, *, host_network: bool) -> dict[str, str | None]:
    wanted = wanted_env(fabric, {}, host_network=host_network)
    return {name: literal(value) for name, value in wanted if name.startswith("NCCL_")}


def _values(
    fabrics_own: dict[str, str | None], fabric: Fabric, own: dict[str, str | None]
) -> dict[str, str | None]:
    """Return the values for one container: those that `env` sets, whether it has run or not."""
    values = {name: own.get(name, value) for name, value in fabrics_own.items()}
    if NCCL_SOCKET in own:
        if "nccl" in fabric.libraries:
            values[NCCL_SOCKET] = own[NCCL_SOCKET]
    elif GLOO_SOCKET in own:
        values.pop(NCCL_SOCKET, None)
    return values


def _fits(value: str) -> bool:
    return size_of(value) <= LONGEST and "\n" not in value
