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
    assert transport_variables.nccl_ib_hca_elsewhere({"NCCL_IB_HCA": value}, fabrics) == blamed


def test_ucx_may_lack_a_transport() -> None:
    """An unset or unknown UCX_TLS leaves all transports."""
    assert transport_variables.ucx_tls_without_rdma({"UCX_TLS": "tcp"}) == "tcp"
    for user_env in ({"UCX_TLS": "rc"}, {"UCX_TLS": ""}, {"UCX_TLS": None}, {}):
        assert transport_variables.ucx_tls_without_rdma(user_env) == ""


@pytest.mark.parametrize(
    ("command", "user_env"),
    [
        ("sglang\n--disaggregation-transfer-backend\nnixl", {}),
        ('--kv-transfer-config={"kv_connector":"NixlConnector"}', {}),
        ("", {"VLLM_NIXL_SIDE_CHANNEL_PORT": "5600"}),
        ("", {"NIXL_LOG_LEVEL": None}),
        ("", {"KV_CONFIG": '{"kv_connector":"NixlConnector"}'}),
    ],
)
def test_nixl_is_known_by_command_and_env(command: str, user_env: dict[str, str | None]) -> None:
    """A word of the command, or variables, make servers use NIXL."""
    assert transport_variables.uses_nixl(command, user_env)


@pytest.mark.parametrize(
    ("command", "user_env"),
    [
        ("vllm serve", {}),
        ("# pip install nixl\nvllm serve", {}),
        ("vllm serve # with nixl some day", {"A": "b", "C": None}),
        ("sglang --disaggregation-transfer-backend mooncake", {"UCX_TLS": "tcp"}),
    ],
)
def test_others_move_no_data_by_nixl(command: str, user_env: dict[str, str | None]) -> None:
    """A comment in a script does not count."""
    assert not transport_variables.uses_nixl(command, user_env)
