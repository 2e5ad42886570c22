"""A variable that can keep a library off RDMA leaves no tick if its value is not seen."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.builders import container, env, gpu, pod
from tests.unit.decide.verdict.judging import judged
from webhook.decide.settings.terms import OFF_VALUE_BY_VARIABLE
from webhook.model.pod import PodManifest

EQUIPPED = ("yes", "Equipped")
_SOURCE = {"configMapKeyRef": {"name": "site", "key": "value"}}
Variables = list[dict[str, Any]]


def _with_gpus(*command: str, **values: str) -> Callable[[Variables], PodManifest]:
    return lambda added: pod(gpu(command=list(command), env=[*env(**values), *added]))


def _without_gpus(*command: str) -> Callable[[Variables], PodManifest]:
    return lambda added: pod(
        container(command=list(command), env=added), annotations={"rdma.lab/fabric": "v100-ib"}
    )


#: At least one pod for each library, and for each that reads further variables with a setting.
_PODS = {
    "NCCL": _with_gpus("torchrun", "train.py"),
    "NCCL and a plugin": _with_gpus("torchrun", "train.py", NCCL_NET_PLUGIN="none"),
    "NIXL": _with_gpus("vllm", "serve", "--kv-transfer-config", '{"kv_connector":"NixlConnector"}'),
    "Mooncake": _with_gpus("sglang", "serve", "--disaggregation-mode", "prefill"),
    "MoRI": _with_gpus("sglang", "serve", "--disaggregation-transfer-backend", "mori"),
    "NVSHMEM": _with_gpus("sglang", "serve", "--moe-a2a-backend", "deepep"),
    "NVSHMEM over UCX": _with_gpus(
        "sglang", "serve", "--moe-a2a-backend", "deepep", NVSHMEM_REMOTE_TRANSPORT="ucx"
    ),
    "NVSHMEM beside UCX": _with_gpus(
        "sglang", "serve", "--moe-a2a-backend", "deepep", UCX_TLS="tcp"
    ),
    "MPI": _without_gpus("mpirun", "solver"),
    "MPI's benchmark": _with_gpus("mpirun", "osu_bw"),
    "Intel MPI": _without_gpus("mpiexec.hydra", "IMB-MPI1"),
    "ps-lite": _with_gpus("bpslaunch", "x", DMLC_ROLE="worker", DMLC_ENABLE_RDMA="fabric"),
    "ps-lite over UCX": _with_gpus("bpslaunch", "x", DMLC_ROLE="worker", DMLC_ENABLE_UCX="1"),
}
#: Those that take a tick only together with another variable, which takes it alone.
_HELPING = {"OMPI_MCA_btl", "DMLC_PS_VAN_TYPE"}


@pytest.mark.parametrize("name", OFF_VALUE_BY_VARIABLE)
@pytest.mark.parametrize("make", _PODS.values(), ids=_PODS)
def test_what_may_turn_rdma_off_leaves_no_tick(
    make: Callable[[Variables], PodManifest], name: str
) -> None:
    """A value from a ConfigMap may be the one that turns it off."""
    if judged(make(env(**{name: OFF_VALUE_BY_VARIABLE[name]}))) != EQUIPPED:
        assert judged(make([{"name": name, "valueFrom": _SOURCE}])) != EQUIPPED


@pytest.mark.parametrize("make", _PODS.values(), ids=_PODS)
def test_without_the_variable_a_pod_has_a_tick(
    make: Callable[[Variables], PodManifest],
) -> None:
    """Otherwise the law would hold for any code."""
    assert judged(make([])) == EQUIPPED


@pytest.mark.parametrize("name", sorted(OFF_VALUE_BY_VARIABLE.keys() - _HELPING))
def test_each_variable_takes_the_tick_of_a_pod(name: str) -> None:
    """Otherwise nothing would be shown about it."""
    value = OFF_VALUE_BY_VARIABLE[name]
    assert any(judged(make(env(**{name: value}))) != EQUIPPED for make in _PODS.values())
