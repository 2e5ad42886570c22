"""The libraries that move a pod's data, in the answer and in JSON."""

from __future__ import annotations

import pytest

from tests.builders import env, gpu
from tests.unit.diagnose.why.pods import (
    explain,
    namespace,
    pod_in_cluster,
    pod_without_call,
    status,
)
from tests.unit.diagnose.why.test_comparison import KNOWN_CONFIGURATION, equipped, explain_with
from webhook.diagnose.why.output import why_form
from webhook.model.fabric import CompiledConfiguration

NIXL = env(VLLM_NIXL_SIDE_CHANNEL_PORT="5600", NCCL_IB_DISABLE="1")
OFF = "NCCL's RDMA is switched off by NCCL_IB_DISABLE=1"


@pytest.mark.parametrize(
    "cluster_configuration", [KNOWN_CONFIGURATION, None], ids=["known", "unknown"]
)
def test_another_library(cluster_configuration: CompiledConfiguration | None) -> None:
    """It is named with what the verdict assumes, before what keeps NCCL off RDMA."""
    explanation = explain_with(equipped(gpu("trainer", env=NIXL)), cluster_configuration)
    assert explanation.libraries == ("NIXL",)
    assert explanation.answer.text == (
        "The pod is equipped for RDMA over v100-ib: device, memory, network and environment are "
        f"right for RDMA with NIXL, assuming that the image runs as root; {OFF}."
    )
    assert why_form([explanation])["pods"][0]["libraries"] == ["NIXL"]


def test_nccl_alone() -> None:
    """JSON names it, the text does not."""
    explanation = explain_with(equipped(), KNOWN_CONFIGURATION)
    assert explanation.libraries == ("NCCL",)
    assert "NCCL" not in explanation.answer.text


@pytest.mark.parametrize(
    ("rdma", "because", "end"),
    [
        ("no", "NcclIbDisabled", ". Libraries: MoRI and NCCL."),
        ("unsure", "MemlockUnknown", " is unknown. Libraries: MoRI and NCCL."),
        ("yes", "Equipped", " are right for RDMA with MoRI and NCCL."),
    ],
)
def test_the_status_alone(rdma: str, because: str, end: str) -> None:
    """The status names the libraries that what the pod carries now does not show."""
    explanation = explain(pod_in_cluster(status(rdma, because, libraries="MoRI,NCCL")))
    assert explanation.libraries == ("MoRI", "NCCL")
    assert explanation.answer.text.endswith(end)


def test_what_moves_no_data_or_is_unknown() -> None:
    """No library is named: for a launcher, and for a pod that the webhook was not called for."""
    assert explain(pod_in_cluster(status("none", "Launcher"))).libraries == ()
    assert explain(pod_without_call(), namespace=namespace({})).libraries == ()
    pod = equipped(gpu("trainer", env=NIXL))
    assert explain(pod, namespace=namespace({})).libraries == ()


def test_three_libraries_are_enumerated() -> None:
    """As in the verdict: with one conjunction."""
    explanation = explain(
        pod_in_cluster(status("no", "MemlockLimited", libraries="Mooncake,NVSHMEM,NCCL"))
    )
    assert explanation.answer.text.endswith("Libraries: Mooncake, NVSHMEM and NCCL.")
