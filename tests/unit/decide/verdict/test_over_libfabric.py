"""Tests of the verdict on fabrics that NCCL reaches through a plugin."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.builders import V100, decision_input, env, gpu, pod
from tests.unit.decide.verdict.judging import judged, verdict_on
from webhook.decide.analysis import DecisionInput
from webhook.model.fabric import FabricEnv, Transport

EQUIPPED = ("yes", "Equipped")


def over(transport: Transport) -> DecisionInput:
    """Make a cluster whose only fabric is reached in this way."""
    return decision_input(replace(V100, transport=transport, env=FabricEnv()))


EFA = over("libfabric")


@pytest.mark.parametrize(
    ("transport", "plugin"),
    [
        ("libfabric", "NCCL (the image must contain its plugin for libfabric, aws-ofi-nccl)"),
        ("gib", "NCCL (the pod must mount Google's plugin gIB)"),
    ],
)
def test_the_plugin_is_assumed(transport: Transport, plugin: str) -> None:
    """Admission cannot see a library in an image, so the verdict names it."""
    message = verdict_on(pod(gpu()), over(transport)).message
    assert f" with {plugin}, assuming that the image runs as root" in message


@pytest.mark.parametrize(
    "values",
    [
        {"NCCL_IB_DISABLE": "1"},
        {"NCCL_NET": "AWS Libfabric"},
        {"NCCL_NET_PLUGIN": "ofi"},
        {"FI_PROVIDER": "efa"},
        {"NCCL_IB_HCA": "mlx5_9"},
    ],
    ids=lambda values: next(iter(values)),
)
def test_what_concerns_only_verbs_does_not_matter(values: dict[str, str]) -> None:
    """The plugin does not read NCCL_IB_*, and these are its own name and provider."""
    assert judged(pod(gpu(env=env(**values))), EFA) == EQUIPPED


@pytest.mark.parametrize(
    ("values", "code"),
    [
        ({"NCCL_NET": "IB"}, "NcclPluginOff"),
        ({"NCCL_NET_PLUGIN": "none"}, "NcclPluginOff"),
        ({"NCCL_NET": "Socket"}, "NcclNetSocket"),
        ({"FI_PROVIDER": "tcp"}, "NcclOfiOverTcp"),
    ],
)
def test_what_keeps_nccl_off_the_plugin(values: dict[str, str], code: str) -> None:
    """NCCL's own transport finds no device that it can use."""
    assert judged(pod(gpu(env=env(**values))), EFA) == ("no", code)


def test_another_plugin_is_not_certain() -> None:
    """Its transport is not visible; for gIB, it is known."""
    assert judged(pod(gpu(env=env(NCCL_NET="other"))), EFA) == ("unsure", "NcclNetPlugin")
    gib = pod(gpu(env=env(NCCL_NET="gIB")))
    assert judged(gib, over("gib")) == EQUIPPED
    assert judged(gib, EFA) == ("unsure", "NcclNetPlugin")
    assert judged(pod(gpu(env=env(NCCL_IB_DISABLE="1"))), over("gib")) == ("no", "NcclIbDisabled")


SGLANG = ["python3", "-m", "sglang.launch_server", "--disaggregation-transfer-backend"]
BACKEND = "SGLANG_DISAGGREGATION_NIXL_BACKEND"


@pytest.mark.parametrize(
    ("backend", "variables", "verdict"),
    [
        ("nixl", {}, ("unsure", "LibraryOverLibfabric")),
        ("nixl", {BACKEND: "UCX"}, ("unsure", "LibraryOverLibfabric")),
        ("nixl", {BACKEND: "LIBFABRIC"}, EQUIPPED),
        ("mooncake", {}, ("unsure", "LibraryOverLibfabric")),
    ],
)
def test_other_libraries(backend: str, variables: dict[str, str], verdict: tuple[str, str]) -> None:
    """They use libfabric if a variable chooses it; without one, the verdict stays open."""
    server = pod(gpu(command=[*SGLANG, backend], env=env(**variables)))
    assert judged(server, EFA) == verdict
    assert judged(pod(gpu(command=[*SGLANG, backend]))) == EQUIPPED


def test_nvshmem_over_libfabric() -> None:
    """Its variable, which a site's `env` may set, chooses libfabric."""
    command = ["python", "serve.py", "--all2all-backend", "deepep_low_latency"]
    assert judged(pod(gpu(command=command)), EFA) == ("unsure", "LibraryOverLibfabric")
    chosen = env(NVSHMEM_REMOTE_TRANSPORT="libfabric")
    assert judged(pod(gpu(command=command, env=chosen)), EFA) == EQUIPPED


def test_the_message_names_the_library() -> None:
    """And its container."""
    verdict = verdict_on(pod(gpu(command=[*SGLANG, "nixl"])), EFA)
    assert verdict.message == "NIXL in container trainer might not use libfabric"
