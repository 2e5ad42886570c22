"""Options of serving engines that name devices or a transport."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.case_names import case_name
from tests.unit.decide.settings.reading import certain, settings_in, settings_of

BACKEND = "SGLANG_DISAGGREGATION_NIXL_BACKEND"


@pytest.mark.parametrize(
    ("words", "devices"),
    [
        ("--disaggregation-ib-device mlx5_7", "mlx5_7"),
        ("--disaggregation-ib-device=mlx5_7,mlx5_8 --tp 8", "mlx5_7,mlx5_8"),
        ("--disaggregation-ib-device $X", None),
        ("--disaggregation-ib-device", None),
        ("--disaggregation-ib-device mlx5_0 --disaggregation-ib-device mlx5_1", "mlx5_1"),
    ],
)
def test_options_of_serving_engines(words: str, devices: str | None) -> None:
    """They are as the variable with the same meaning."""
    settings = settings_in(f"python -m sglang.launch_server {words}")
    assert certain(settings) == {"MOONCAKE_DEVICE": devices}
    source = settings.certain["MOONCAKE_DEVICE"].source
    assert source == "--disaggregation-ib-device in its command"
    for backend in ("mooncake", "$BACKEND"):
        chosen = f"--disaggregation-transfer-backend {backend} {words}"
        assert certain(settings_in(f"python -m sglang.launch_server {chosen}")) == certain(settings)
    mori = f"python -m sglang.launch_server --disaggregation-transfer-backend mori {words}"
    assert certain(settings_in(mori)) == {"MORI_RDMA_DEVICES": devices}
    other = f"python -m sglang.launch_server --disaggregation-transfer-backend=nixl {words}"
    assert certain(settings_in(other)) == {}


def test_only_vllm_accepts_underscores() -> None:
    """SGLang rejects them."""
    words = ("serve", "--mooncake-ib-device", "mlx5_7", "--disaggregation_ib_device", "mlx5_8")
    assert certain(settings_of(*words)) == {"MOONCAKE_DEVICE": "mlx5_7"}


def test_devices_of_elastic_experts() -> None:
    """Those of the disaggregation come first, and the backend of that is not theirs."""
    elastic = "serve --mooncake-ib-device mlx5_7"
    assert certain(settings_in(elastic)) == {"MOONCAKE_DEVICE": "mlx5_7"}
    nixl = f"{elastic} --disaggregation-transfer-backend nixl"
    assert certain(settings_in(nixl)) == {"MOONCAKE_DEVICE": "mlx5_7"}
    combined = f"{elastic} --disaggregation-ib-device mlx5_8"
    assert certain(settings_in(combined)) == {"MOONCAKE_DEVICE": "mlx5_8"}
    assert certain(settings_in("serve --mooncake-ib-device")) == {"MOONCAKE_DEVICE": None}


def connector(name: str, **configuration: Any) -> dict[str, Any]:
    """Make vLLM's configuration of a connector."""
    return {"kv_connector": name, "kv_connector_extra_config": configuration}


MULTI = connector(
    "MultiConnector",
    connectors=[
        connector("NixlConnector", backends=["LIBFABRIC"]),
        connector("MooncakeStoreConnector", protocol="tcp"),
        "x",
    ],
)


@pytest.mark.parametrize(
    ("configuration", "expected"),
    [
        (connector("NixlConnector", backends=["LIBFABRIC"]), {BACKEND: "LIBFABRIC"}),
        (connector("NixlConnector", backends=["UCX", "GDS"]), {BACKEND: "UCX,GDS"}),
        (connector("NixlConnector", backends="UCX"), {}),
        (connector("NixlConnector", mooncake_protocol="tcp"), {}),
        (connector("OffloadingConnector", backends=["POSIX"]), {}),
        (connector("MooncakeConnector", mooncake_protocol="tcp"), {"MOONCAKE_PROTOCOL": "tcp"}),
        (connector("MooncakeConnector", mooncake_protocol=1, backends=["X"]), {}),
        (connector("MooncakeConnector", device_name="mlx5_7"), {"MOONCAKE_DEVICE": "mlx5_7"}),
        (connector("MooncakeConnector", device_name="$X"), {"MOONCAKE_DEVICE": None}),
        (MULTI, {BACKEND: "LIBFABRIC", "MOONCAKE_PROTOCOL": "tcp"}),
        (connector("MultiConnector", connectors={"a": 1}), {}),
        ({"kv_connector": "NixlConnector", "kv_connector_extra_config": []}, {}),
        ({"kv_connector": ["NixlConnector"]}, {}),
        ([MULTI], {}),
    ],
    ids=case_name,
)
def test_connectors_of_vllm(configuration: object, expected: dict[str, str | None]) -> None:
    """A connector's configuration is read as its library means it, whatever quotes it has."""
    text = json.dumps(configuration)
    for option in ("--kv-transfer-config", "--kv_transfer_config"):
        for words in ((option, text), (f"{option}={text}",)):
            assert certain(settings_of("vllm", "serve", *words)) == expected
    quoted = text.replace('"', '\\"').replace("$", "\\$")
    settings = settings_in(f'vllm serve --kv-transfer-config "{quoted}"')
    assert certain(settings) == expected
    assert {setting.source for setting in settings.certain.values()} <= {
        "--kv-transfer-config in its command"
    }


def test_storage_of_sglang() -> None:
    """The configuration of HiCache is Mooncake's own."""
    text = json.dumps({"protocol": "tcp", "device_name": "mlx5_7", "kv_connector": "nixl"})
    settings = settings_of("serve", "--hicache-storage-backend-extra-config", text)
    assert certain(settings) == {"MOONCAKE_PROTOCOL": "tcp", "MOONCAKE_DEVICE": "mlx5_7"}
    assert settings.certain["MOONCAKE_PROTOCOL"].source == (
        "--hicache-storage-backend-extra-config in its command"
    )


def padded(length: int) -> str:
    """Make a configuration of that many characters."""
    text = json.dumps(connector("MooncakeConnector", device_name="a"))
    return text + " " * (length - len(text))


@pytest.mark.parametrize(
    "text", ["", "{", "NixlConnector", "[" * 4096, '{"a": ' + "1" * 4090 + "}", padded(4097)]
)
def test_a_configuration_that_is_not_read(text: str) -> None:
    """Invalid JSON, numbers that are too long, too much nesting, and a text that is too long."""
    assert certain(settings_of("vllm", "--kv-transfer-config", text)) == {}
    assert certain(settings_of("vllm", "--kv-transfer-config")) == {}


def test_the_longest_configuration() -> None:
    """Its length is the limit."""
    settings = settings_of("vllm", "--kv-transfer-config", padded(4096))
    assert certain(settings) == {"MOONCAKE_DEVICE": "a"}
