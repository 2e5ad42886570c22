"""Tests of the settings in a container that keep its traffic off RDMA."""

from __future__ import annotations

import pytest

from tests.case_names import case_name
from webhook.model import transport_variables


@pytest.mark.parametrize(
    ("value", "off"),
    [
        *((value, True) for value in ("1", "2", "-1", " 1", "0x1", "010", "10")),
        *(
            (value, False)
            for value in ("0", "00", "0x0", "0X0", "-0", " +0", "", "true", "1x", "1 ", None)
        ),
    ],
    ids=case_name,
)
def test_nccl_reads_a_number(value: str | None, *, off: bool) -> None:
    """NCCL_IB_DISABLE turns RDMA off if it is a number other than 0; NCCL ignores other texts."""
    assert bool(transport_variables.nccl_ib_disabled({"NCCL_IB_DISABLE": value})) is off
    assert not transport_variables.nccl_ib_disabled({})


@pytest.mark.parametrize(
    ("value", "off"),
    [("Socket", True), ("socket", True), ("SOCKET", True), ("IB", False), ("", False), (None, 0)],
    ids=case_name,
)
def test_nccl_may_be_set_to_use_sockets(value: str | None, *, off: bool) -> None:
    """NCCL compares the names of its transports without case."""
    assert transport_variables.nccl_net_socket({"NCCL_NET": value}) == (value if off else "")


@pytest.mark.parametrize(
    ("value", "fabrics", "blamed"),
    [
        ("mlx5_9", "=mlx5_0", "mlx5_9"),
        ("mlx5_0", "=mlx5_0", ""),
        ("mlx5_9", None, ""),
        (None, "=mlx5_0", ""),
    ],
    ids=case_name,
)
def test_devices_are_compared_with_the_fabrics(
    value: str | None, fabrics: str | None, blamed: str
) -> None:
    """If either is unknown, nothing is to blame."""
    assert transport_variables.nccl_ib_hca_not_of_fabric({"NCCL_IB_HCA": value}, fabrics) == blamed


def test_ucx_may_lack_a_transport() -> None:
    """An unset or unknown UCX_TLS leaves all transports."""
    assert transport_variables.ucx_tls_without_rdma({"UCX_TLS": "tcp"}) == "tcp"
    for user_env in ({"UCX_TLS": "rc"}, {"UCX_TLS": ""}, {"UCX_TLS": None}, {}):
        assert transport_variables.ucx_tls_without_rdma(user_env) == ""


@pytest.mark.parametrize(
    ("user_env", "command", "setting"),
    [
        ({"MC_FORCE_TCP": "1"}, "", "MC_FORCE_TCP=1"),
        ({"MC_FORCE_TCP": ""}, "", "MC_FORCE_TCP="),
        ({"MC_FORCE_TCP": None}, "", "MC_FORCE_TCP="),
        ({"MOONCAKE_PROTOCOL": "TCP"}, "", "MOONCAKE_PROTOCOL=TCP"),
        ({"MOONCAKE_PROTOCOL": "rdma"}, "", ""),
        ({"MOONCAKE_PROTOCOL": None}, "", ""),
        (
            {},
            "x\n--disaggregation-transfer-backend\nmooncake_tcp",
            "--disaggregation-transfer-backend mooncake_tcp",
        ),
        ({}, "--disaggregation-transfer-backend=mooncake", ""),
        ({}, "mooncake_client\n--protocol=tcp", "--protocol=tcp"),
        ({}, "--mooncake-protocol tcp", "--mooncake-protocol tcp"),
        ({}, "--protocol=tcpx", ""),
        ({}, '{"mooncake_protocol": "tcp"}', '"mooncake_protocol": "tcp"'),
        ({}, '{"protocol":"rdma"}', ""),
        ({"MOONCAKE_PROTOCOL": "tcp"}, '{"protocol": "tcp"}', '"protocol": "tcp"'),
    ],
    ids=case_name,
)
def test_mooncake_may_be_made_to_use_tcp(
    user_env: dict[str, str | None], command: str, setting: str
) -> None:
    """MC_FORCE_TCP counts with any value; else the protocol decides, named as the user wrote it."""
    assert transport_variables.mooncake_tcp(user_env, command) == setting


@pytest.mark.parametrize(
    ("user_env", "expected"),
    [
        ({}, ("", "")),
        ({"SGLANG_DISAGGREGATION_NIXL_BACKEND": "ucx"}, ("", "")),
        ({"SGLANG_DISAGGREGATION_NIXL_BACKEND": "GDS,UCX"}, ("", "")),
        ({"SGLANG_DISAGGREGATION_NIXL_BACKEND": None}, ("", "")),
        (
            {"SGLANG_DISAGGREGATION_NIXL_BACKEND": "", "TRTLLM_NIXL_KVCACHE_BACKEND": "LIBFABRIC"},
            ("TRTLLM_NIXL_KVCACHE_BACKEND", "LIBFABRIC"),
        ),
        (
            {"SGLANG_DISAGGREGATION_NIXL_BACKEND": "UCXX"},
            ("SGLANG_DISAGGREGATION_NIXL_BACKEND", "UCXX"),
        ),
    ],
    ids=case_name,
)
def test_nixl_may_use_another_backend(
    user_env: dict[str, str | None], expected: tuple[str, str]
) -> None:
    """UCX is the default, and the one for the network where it is among several."""
    assert transport_variables.nixl_backend(user_env) == expected


@pytest.mark.parametrize(
    ("value", "fabric_value", "elsewhere"),
    [
        ("mlx5_7", "=mlx5_0,mlx5_1", True),
        ("mlx5_7:1, mlx5_8:1", "=mlx5_0", True),
        ("eth0", "=mlx5_0", True),
        ("mlx5_7,mlx5_0", "=mlx5_0", False),
        ("mlx5_0:1,eth0", "=mlx5_0", False),
        ("mlx5_10", "=mlx5_1", True),
        ("ibp3", "ibp", False),
        ("mlx5_7", None, False),
        ("mlx5_0:2", "=mlx5_0:1", True),
        ("mlx5_0:2,mlx5_0", "=mlx5_0:1", False),
        ("$(X)", "=mlx5_0", True),
        ("mlx5_$(N):1", "=mlx5_0", True),
        ("mlx5_0,$(X)", "=mlx5_0", False),
        ('{"0": "$(X)"}', "=mlx5_0", False),
        ("$X", "=mlx5_0", False),
        ("all", "=mlx5_0", False),
        ("Auto-Discovery", "=mlx5_0", False),
        ("^mlx5_0", "=mlx5_0", False),
        ("mlx5_*", "=mlx5_0", False),
        ('{"0": "mlx5_7"}', "=mlx5_0", False),
        ("", "=mlx5_0", False),
    ],
    ids=case_name,
)
def test_lists_of_devices_are_compared_with_the_fabrics(
    value: str, fabric_value: str | None, *, elsewhere: bool
) -> None:
    """The names are exact; whatever is no plain list is not judged."""
    assert transport_variables.lists_no_device_of(value, fabric_value) is elsewhere


@pytest.mark.parametrize(
    ("value", "off"),
    [
        *((value, True) for value in ("tcp", "sockets", "TCP", "udp", "net", "tcp;ofi_rxm")),
        *((value, True) for value in ("tcp, sockets", "shm,tcp", "ofi_rxm;tcp", "ofi_rxd;udp")),
        *((value, False) for value in ("", "efa", "verbs", "verbs;ofi_rxm", "tcp,verbs", "mlx")),
        *((value, False) for value in ("^tcp", "^verbs", "shm", "ofi_rxm", "tcpx", None)),
        ("tcp," * 1024 + "verbs", False),
    ],
    ids=case_name,
)
def test_providers_of_libfabric(value: str | None, *, off: bool) -> None:
    """Only a list of providers without RDMA turns it off."""
    blamed = transport_variables.provider_without_rdma({"FI_PROVIDER": value}, "FI_PROVIDER")
    assert blamed == (value if off else "")
    assert transport_variables.provider_without_rdma({}, "FI_PROVIDER") == ""
