"""The settings of ucx_perftest: whether they leave only RDMA, exclude it, or stay in a node."""

from __future__ import annotations

import pytest

from tests.unit.diagnose.tools.benchmarks.outputs import only, ucx_perftest
from webhook.diagnose.tools.benchmarks import read_output


@pytest.mark.parametrize(
    ("shell", "setting", "over_rdma"),
    [
        ("UCX_TLS=tcp ucx_perftest 10.0.0.2", "UCX_TLS=tcp", False),
        ("UCX_TLS='tcp,self' ./ucx_perftest node-b", "UCX_TLS=tcp,self", False),
        ("UCX_TLS=^rc,ud,dc ucx_perftest node-b", "UCX_TLS=^rc,ud,dc", False),
        ("mpirun -x UCX_TLS=tcp ucx_perftest", "UCX_TLS=tcp", False),
        ("export UCX_TLS=tcp\nucx_perftest", "UCX_TLS=tcp", False),
        ("ucx_perftest\nUCX  INFO  UCX_* env variables: UCX_TLS=tcp", "UCX_TLS=tcp", False),
        ("ucx_perftest node-b -t put_bw -d eth0 -x tcp", "-x tcp", False),
        ("ucx_perftest node-b -t put_bw -d mlx5_0:1 -x rc_mlx5", "-x rc_mlx5", True),
        ("UCX_TLS=rc,sm ucx_perftest node-b", "UCX_TLS=rc,sm", True),
        ("UCX_TLS=^tcp ucx_perftest node-b", "UCX_TLS=^tcp", True),
        ("UCX_NET_DEVICES=mlx5_0:1 ucx_perftest b", "UCX_NET_DEVICES=mlx5_0:1", True),
        (
            "UCX_NET_DEVICES=mlx5_0:1,mlx5_1:1 ucx_perftest b",
            "UCX_NET_DEVICES=mlx5_0:1,mlx5_1:1",
            True,
        ),
        ("UCX_NET_DEVICES=mlx5_0:1 UCX_TLS=tcp ucx_perftest b", "UCX_TLS=tcp", False),
        ("UCX_TLS=rc ucx_perftest &\nUCX_TLS=tcp ucx_perftest b", "UCX_TLS=tcp", False),
        ("export UCX_TLS=tcp\nUCX_TLS=rc ucx_perftest b", "UCX_TLS=rc", True),
        ("export UCX_TLS=tcp\nunset UCX_TLS\nunset UCX_TLS\nucx_perftest b", None, None),
        ("UCX_NET_DEVICES=mlx5_0:1,eth0 ucx_perftest b", None, None),
        ("UCX_NET_DEVICES=eth0 ucx_perftest b", None, None),
        ("UCX_TLS=rc,tcp ucx_perftest b", None, None),
        ("UCX_TLS=all ucx_perftest b", None, None),
        ("UCX_TLS=^sm ucx_perftest b", None, None),
        ("UCX_TLS=sm,self ucx_perftest b", None, None),
        ("MY_UCX_TLS=tcp ucx_perftest b", None, None),
        ("ucx_perftest b", None, None),
    ],
)
def test_the_setting_that_decides(shell: str, setting: str | None, over_rdma: bool | None) -> None:
    """UCX takes TCP if it may and RDMA is missing, so only an exclusion of one decides."""
    run = only(f"{shell}\n{ucx_perftest()}")
    assert (run.transport_setting, run.over_rdma) == (setting, over_rdma)


@pytest.mark.parametrize(
    ("shell", "loopback"),
    [
        ("ucx_perftest 127.0.0.1 -t tag_bw", "The client connected to 127.0.0.1, so "),
        ("ucx_perftest -t tag_bw 127.1.2.3", "The client connected to 127.1.2.3, so "),
        ("ucx_perftest localhost", "The client connected to localhost, so "),
        ("ucx_perftest ::1", "The client connected to ::1, so "),
        ("Accepted connection from 127.0.0.1:40112", "The client connected from 127.0.0.1, so "),
        ("Accepted connection from [::1]:40112", "The client connected from ::1, so "),
        ("Accepted connection from ::1:40112", "The client connected from ::1, so "),
        ("UCX_TLS=sm,self ucx_perftest b", "UCX_TLS=sm,self allows no network, so "),
        ("ucx_perftest b -x posix", "-x posix allows no network, so "),
    ],
)
def test_loopback(shell: str, loopback: str) -> None:
    """A loopback address at either end, or memory alone, tests no cable."""
    run = only(f"{shell}\n{ucx_perftest()}")
    assert run.loopback == f"{loopback}no cable was tested."


@pytest.mark.parametrize(
    "shell",
    [
        "ucx_perftest 10.0.0.2 -c 127",
        "ping 127.0.0.1",
        "ucx_perftest localhost.example",
        "UCX_NET_DEVICES=sm ucx_perftest b",
        "Accepted connection from 10.0.0.2:127",
    ],
)
def test_no_sign_of_loopback(shell: str) -> None:
    """Other words and other programs are no sign of it."""
    assert only(f"{shell}\n{ucx_perftest()}").loopback is None


def test_the_commands_of_several_runs() -> None:
    """A command counts for its own run, an export for all later ones."""
    stopped = ucx_perftest().partition("Final:")[0]
    text = "".join(
        [
            f"UCX_TLS=tcp ucx_perftest 127.0.0.1\n{ucx_perftest()}",
            "export UCX_TLS=rc\n",
            f"ucx_perftest b\n{stopped}",
            f"UCX_TLS=tcp ucx_perftest b\n{stopped}",
            ucx_perftest(),
        ]
    )
    runs = read_output(text).measurements
    assert [(run.transport_setting, run.loopback is None) for run in runs] == [
        ("UCX_TLS=tcp", False),
        ("UCX_TLS=rc", True),
        ("UCX_TLS=tcp", True),
        ("UCX_TLS=rc", True),
    ]
