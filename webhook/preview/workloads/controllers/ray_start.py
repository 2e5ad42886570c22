"""The command that KubeRay generates to start Ray in a container.

Source: ray-project/kuberay v1.4.2, ray-operator/controllers/ray/common/pod.go
(setMissingRayStartParams, generateRayStartCommand, convertParamMap). Left out: the resources of
other accelerators (`neuron_cores`, `TPU`).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from webhook.model.pod import at, mapping
from webhook.model.quantity import whole
from webhook.preview.workloads.controllers.workload import word

_GPU = re.compile(r".*gpu|.*nvidia\.com/mig-\d+g\.\d+gb")
#: Options with a value that may be true or false; the others of this form are switches.
_NO_SWITCHES = frozenset({"log-color", "include-dashboard"})


def ray_start(given: Mapping[str, Any], resources: Any, *, head: str) -> str:
    """Return the command for `rayStartParams` and the container's resources.

    `head` is the address that a worker connects to; "" for the head itself.
    """
    ours = {"address": head} if head else {"dashboard-host": "0.0.0.0"}  # noqa: S104 -- a pod's
    ports = {"metrics-export-port": "8080", "dashboard-agent-listen-port": "52365"}
    amounts = dict(_amounts(resources))
    params = {**ours, **ports, **amounts, **given, "block": "true"}
    flags = "".join(_flag(name, word(params, (name,))) for name in sorted(params))
    return f"ray start {'' if head else '--head '}{flags}"


def _flag(name: str, value: str) -> str:
    if value.lower() not in ("true", "false") or name in _NO_SWITCHES:
        return f" --{name}={value} "
    return f" --{name} " if value.lower() == "true" else ""


def _amounts(resources: Any) -> list[tuple[str, str]]:
    limits = mapping(resources, ("limits",))
    cpus = _whole(at(limits, ("cpu",))) or _whole(at(resources, ("requests", "cpu")))
    gpus = [_whole(limits[name]) for name in sorted(limits) if _GPU.fullmatch(name)]
    found = [
        ("num-cpus", cpus),
        ("memory", _whole(at(limits, ("memory",)))),
        ("num-gpus", next(filter(None, gpus), 0)),
    ]
    return [(name, str(number)) for name, number in found if number]


def _whole(quantity: Any) -> int:
    """Return the quantity as a whole number; 0 for one that the API server refuses."""
    try:
        return whole(quantity or 0)
    except ValueError:
        return 0
