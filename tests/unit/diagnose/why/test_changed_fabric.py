"""A fabric that was changed after a pod was admitted."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import replace
from typing import Any

import pytest

from tests.builders import H100, V100, decide_on, decision_input, env, fabrics, gpu
from tests.builders import pod as new_pod
from tests.unit.diagnose.why.test_answer import RDMA, log
from tests.unit.diagnose.why.test_comparison import (
    KNOWN_CONFIGURATION,
    equipped,
    explain_with,
    main,
)
from webhook.model.fabric import CompiledConfiguration, Fabric, FabricEnv
from webhook.model.finding import Finding

HCAS = (("NCCL_IB_HCA", "=mlx5_4,mlx5_5"),)


def with_env(*library_variables: tuple[str, str], **fields: Any) -> Fabric:
    """Return the fabric with other variables."""
    return replace(V100, env=FabricEnv(library_variables=library_variables, **fields))


CORRECTED = with_env(*HCAS, ucx_devices="mlx5_4:1,mlx5_5:1")


def now(*members: Fabric) -> CompiledConfiguration:
    """Return the configuration of the cluster, which is not that of the admission any more."""
    return replace(fabrics(*members, H100), config_hash="ba9876543210")


def answer(pod: dict[str, Any], *members: Fabric, **evidence: Any) -> Finding:
    """Return the answer for a pod, with the fabrics that the cluster has now."""
    return explain_with(pod, now(*members), **evidence).answer


def test_devices_that_were_corrected() -> None:
    """The pod has the old ones, so it is not certain that they work."""
    explanation = explain_with(equipped(), now(CORRECTED))
    assert (explanation.rdma, explanation.answer.level) == ("unsure", "unsure")
    assert explanation.answer.code == "FabricChanged"
    assert explanation.answer.text == (
        "RDMA over v100-ib is not certain: fabric v100-ib was changed after the pod was admitted. "
        "Container trainer has NCCL_IB_HCA==mlx5_0,mlx5_1, and the fabric has =mlx5_4,mlx5_5 now."
    )
    assert explanation.answer.remedy == (
        "Create the pod again, so that it gets the fabric's current values."
    )


def test_the_devices_of_ucx() -> None:
    """They count, too."""
    of_ucx = with_env(*V100.env.library_variables, ucx_devices="mlx5_4:1")
    assert "has UCX_NET_DEVICES=mlx5_0:1,mlx5_1:1,eth0, and" in answer(equipped(), of_ucx).text


def test_a_gid_index() -> None:
    """With a wrong one, RoCE does not work."""
    index = ("NCCL_IB_GID_INDEX", "3")
    before = with_env(*V100.env.library_variables, index)
    pod: dict[str, Any] = deepcopy(decide_on(new_pod(), decision_input(before, H100)).pod)
    after = with_env(*V100.env.library_variables, ("NCCL_IB_GID_INDEX", "1"))
    assert answer(pod, after).code == "FabricChanged"


@pytest.mark.parametrize(
    "member",
    [
        V100,
        with_env(*V100.env.library_variables, ("NCCL_IB_TC", "106"), ucx_devices=""),
        replace(V100, socket_interface="eth1"),
        replace(CORRECTED, name="v100-new"),
        with_env(),
    ],
    ids=["the same", "traffic class", "interface", "another fabric", "no devices"],
)
def test_changes_that_do_not_matter(member: Fabric) -> None:
    """The pod's devices are still those of the fabric, or the fabric says nothing about them."""
    assert answer(equipped(), member).code == "Equipped"


def test_an_interface_that_the_user_chose_by_its_prefix() -> None:
    """UCX_NET_DEVICES has the fabric's of that time, but the devices are the same."""
    pod = equipped(gpu("trainer", env=env(NCCL_SOCKET_IFNAME="eth")))
    devices = next(pair for pair in main(pod)["env"] if pair["name"] == "UCX_NET_DEVICES")
    assert devices["value"].endswith(",eth0")
    assert answer(pod, replace(V100, socket_interface="eth1")).code == "Equipped"


def test_values_of_the_user() -> None:
    """They are the user's choice, whatever the fabric has."""
    pod = equipped(gpu("trainer", env=env(NCCL_IB_HCA="=mlx5_1")))
    assert answer(pod, CORRECTED).code == "Equipped"
    skipping = equipped(annotations={"rdma.lab/skip": "env"})
    assert answer(skipping, CORRECTED).code == "Equipped"


def test_a_verdict_that_was_not_good() -> None:
    """It stays."""
    limited = equipped(gpu("trainer", securityContext={"runAsUser": 1000}))
    assert answer(limited, CORRECTED).code == "MemlockUnknown"


def test_a_pod_that_uses_rdma() -> None:
    """Its devices work."""
    assert answer(equipped(), CORRECTED, logs=(log(RDMA),)).code == "Equipped"


def test_configurations_that_show_nothing() -> None:
    """That of the admission, and one that could not be read."""
    pod = equipped()
    assert explain_with(pod, fabrics(CORRECTED, H100)).answer.code != "FabricChanged"
    assert (
        explain_with(pod, None).answer.code
        == explain_with(pod, KNOWN_CONFIGURATION).answer.code
        == "Equipped"
    )


@pytest.mark.parametrize("configuration", [now(CORRECTED), None], ids=["changed", "unknown"])
def test_a_pod_of_no_shape(configuration: CompiledConfiguration | None) -> None:
    """Nothing is said about it."""
    pod = equipped()
    pod["spec"] = {"containers": "x"}
    assert explain_with(pod, configuration).answer.code == "Equipped"
