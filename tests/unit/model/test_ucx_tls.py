"""Tests of the RDMA transports that a value of UCX_TLS leaves."""

from __future__ import annotations

import pytest

from webhook.model.transport_variables import allows_rdma


@pytest.mark.parametrize(
    "tls",
    [
        *("all", "ib", "rc", "rc_x", "rc_v", "ud", "ud_x", "ud_v", "dc", "dc_x"),
        *("rc_mlx5", "rc_verbs", "ud_mlx5", "ud_verbs", "dc_mlx5", "srd", "gga_mlx5"),
        *("tcp,rc", "cuda_copy, rc ,sm", "rc*", "*", r"\rc_mlx5", "tcp,rc_*"),
        *("^tcp", "^rc", "^rc,ud", "^rc_x,ud_x,dc", "^cuda_ipc,sm", "^srd", "^"),
    ],
)
def test_these_leave_rdma(tls: str) -> None:
    """An alias or a transport of an HCA is named, or not all of them are left out."""
    assert allows_rdma(tls)


@pytest.mark.parametrize(
    "tls",
    [
        *("", "tcp", "tcp,self", "cuda_ipc,cuda_copy,tcp", "sm,self", "RC", "rcx", "rdmacm"),
        *("ibx", "dc_v", "rc_", r"\rc", "x*", ",", "self,tcp,cuda,shm"),
        *("^ib", "^all", "^rc,ud,dc", "^tcp,ib", "^rc_v,rc_x,ud_v,ud_x,dc_x", "^*", "^rc*,ud*,dc*"),
    ],
)
def test_these_leave_none(tls: str) -> None:
    """Only other transports are named, or all transports of an HCA are left out."""
    assert not allows_rdma(tls)


def test_only_the_beginning_of_an_endless_value_is_read() -> None:
    """A user's value of any length takes bounded time."""
    assert allows_rdma("tcp," * 1023 + "rc")
    assert not allows_rdma("tcp," * 1024 + "rc")
