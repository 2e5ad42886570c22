from __future__ import annotations

from typing import Any

import pytest

from tests.builders import env, gpu, pod
from tests.case_names import case_name
from tests.unit.decide.verdict.judging import judged, verdict_on

EQUIPPED = ("yes", "Equipped")
OVER_TCP = ("no", "PsLiteOverTcp")
NO_ADDRESS = ("unsure", "PsLiteWithoutAddress")
COMPUTED, POSSIBLE = ("unsure", "SettingComputed"), ("unsure", "SettingPossible")
WORKER = {"DMLC_ROLE": "worker", "DMLC_PS_ROOT_URI": "scheduler"}


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({}, EQUIPPED),
        ({"command": ["bpslaunch", "python", "train.py"]}, OVER_TCP),
        ({"env": env(DMLC_ROLE="worker")}, OVER_TCP),
        ({"env": env(DMLC_PS_ROOT_URI="scheduler")}, OVER_TCP),
        *(({"env": env(**WORKER, DMLC_ENABLE_RDMA=tcp)}, OVER_TCP) for tcp in ("0", "", "zmq")),
        *(({"env": env(**WORKER, DMLC_ENABLE_RDMA=on)}, NO_ADDRESS) for on in ("1", "ibverbs")),
        ({"env": env(**WORKER, DMLC_ENABLE_RDMA="fabric")}, EQUIPPED),
        ({"env": env(**WORKER, DMLC_ENABLE_UCX="1")}, EQUIPPED),
        ({"env": env(**WORKER, DMLC_ENABLE_UCX="0")}, OVER_TCP),
        ({"env": env(**WORKER, DMLC_ENABLE_UCX="")}, OVER_TCP),
        ({"env": env(**WORKER, DMLC_PS_VAN_TYPE="")}, OVER_TCP),
        ({"env": env(**WORKER, DMLC_PS_VAN_TYPE="p3")}, OVER_TCP),
        ({"env": env(**WORKER, DMLC_PS_VAN_TYPE="ibverbs")}, NO_ADDRESS),
        ({"command": ["sh", "-c", "export DMLC_ENABLE_RDMA=1; bpslaunch x"]}, NO_ADDRESS),
        ({"command": ["sh", "-c", "export DMLC_ENABLE_RDMA=0; bpslaunch x"]}, OVER_TCP),
        ({"command": ["sh", "-c", "export DMLC_ENABLE_RDMA=$X; bpslaunch x"]}, COMPUTED),
        ({"command": ["sh", "-c", "[ $Y ] && export DMLC_ENABLE_RDMA=0; bpslaunch x"]}, POSSIBLE),
        ({"command": ["sh", "-c", "[ $Y ] && export DMLC_ENABLE_RDMA=1; bpslaunch x"]}, NO_ADDRESS),
        ({"command": ["sh", "-c", "[ $Y ] && export DMLC_ENABLE_UCX=1; bpslaunch x"]}, EQUIPPED),
        ({"command": ["sh", "-c", "export DMLC_ENABLE_UCX=$X; bpslaunch x"]}, COMPUTED),
        ({"command": ["sh", "-c", "export DMLC_PS_VAN_TYPE=$X; bpslaunch x"]}, COMPUTED),
        ({"command": ["horovodrun", "python"], "env": env(**WORKER)}, EQUIPPED),
    ],
    ids=case_name,
)
def test_a_parameter_server_uses_tcp_by_default(
    fields: dict[str, Any], expected: tuple[str, str]
) -> None:
    """NCCL carries no traffic between the nodes of such a job."""
    assert judged(pod(gpu(**fields))) == expected


def test_a_value_that_only_the_kubelet_knows_is_not_certain() -> None:
    """A ConfigMap may have the right one."""
    source = {"configMapKeyRef": {"name": "m", "key": "rdma"}}
    variables = [*env(**WORKER), {"name": "DMLC_ENABLE_RDMA", "valueFrom": source}]
    assert judged(pod(gpu(env=variables))) == ("unsure", "ValueUnseen")


def test_the_message_names_the_variable_to_set() -> None:
    """It is BytePS's variable."""
    assert verdict_on(pod(gpu(env=env(**WORKER)))).message == (
        "container trainer uses ps-lite, whose default is TCP; set DMLC_ENABLE_RDMA=ibverbs in "
        "all pods"
    )


MXNET = ["python", "train_mnist.py", "--kv-store", "dist_device_sync"]


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({}, OVER_TCP),
        ({"env": env(DMLC_ENABLE_RDMA="ibverbs")}, OVER_TCP),
        ({"env": env(DMLC_PS_VAN_TYPE="zmq")}, OVER_TCP),
        ({"env": env(DMLC_PS_VAN_TYPE="p3")}, OVER_TCP),
        ({"env": env(DMLC_PS_VAN_TYPE="ibverbs")}, NO_ADDRESS),
        ({"command": ["bpslaunch", *MXNET], "env": env(DMLC_ENABLE_RDMA="1")}, NO_ADDRESS),
        ({"env": env(DMLC_PS_VAN_TYPE="a", DMLC_ENABLE_RDMA="ibverbs")}, EQUIPPED),
    ],
    ids=case_name,
)
def test_mxnets_own_parameter_server(fields: dict[str, Any], expected: tuple[str, str]) -> None:
    """It reads DMLC_PS_VAN_TYPE alone; BytePS's variables mean nothing to it."""
    assert judged(pod(gpu(**{"command": MXNET, **fields}))) == expected


def test_the_message_for_mxnet() -> None:
    """It names MXNet's variable, and no NCCL: that moves nothing between the nodes."""
    labels = {"training.kubeflow.org/job-name": "a"}
    verdict = verdict_on(pod(gpu(command=MXNET), labels=labels))
    assert verdict.libraries == ("ps-lite",)
    assert verdict.message == (
        "container trainer uses ps-lite, whose default is TCP; set DMLC_PS_VAN_TYPE=ibverbs in "
        "all pods"
    )


@pytest.mark.parametrize(
    "fields",
    [
        {"hostNetwork": True},
        {"annotations": {"k8s.v1.cni.cncf.io/networks": "ib"}},
    ],
    ids=case_name,
)
def test_a_pod_that_may_have_an_address(fields: dict[str, Any]) -> None:
    """rdma_cm resolves IP addresses of interfaces in the pod's network."""
    worker = gpu(env=env(**WORKER, DMLC_ENABLE_RDMA="ibverbs"))
    assert judged(pod(worker, **fields)) == EQUIPPED


def test_the_message_about_an_address() -> None:
    """It names both ways to get one."""
    verdict = verdict_on(pod(gpu(env=env(**WORKER, DMLC_ENABLE_RDMA="1"))))
    assert verdict.message == (
        "ps-lite in container trainer needs an IP address on an RDMA interface (rdma_cm); add a "
        "network, or use hostNetwork"
    )
