"""Tests of the devices in NCCL's log."""

from __future__ import annotations

import pytest

from webhook.diagnose.tools.nccl_devices import NcclDevices, read_nccl_devices

USING = (
    "n:1:1 [0] NCCL INFO NET/IB : Using [0]mlx5_0:1/IB [1]mlx5_3:1/IB [RO]; OOB eth0:10.0.0.1<0>"
)
CHANNEL = "n:1:1 [0] NCCL INFO Channel 00/0 : 7[3] -> 8[0] [receive] via NET/IB/{}/GDRDMA"


def test_a_log_without_devices() -> None:
    """Nothing is invented."""
    assert read_nccl_devices("NET/Socket : Using [0]eth0:10.0.0.1<0>") == NcclDevices()
    assert read_nccl_devices("") == NcclDevices()


def test_devices_and_channels() -> None:
    """The channels have the numbers of the list; the longest list is the node's."""
    short = "n:1:1 [0] NCCL INFO NET/IB : Using [0]mlx5_0:1/IB; OOB eth0:10.0.0.1<0>"
    log = "\n".join([short, USING, short, CHANNEL.format(1), CHANNEL.format(1)])
    assert read_nccl_devices(log) == NcclDevices(("mlx5_0", "mlx5_3"), ("mlx5_3",))
    every = read_nccl_devices("\n".join([USING, CHANNEL.format(1), CHANNEL.format(0)]))
    assert every.used == ("mlx5_0", "mlx5_3")


@pytest.mark.parametrize("network", ["IB", "IBext", "IBext_v8", "gIB"])
def test_networks(network: str) -> None:
    """Plugins that derive from NCCL's transport write the same lines."""
    log = f"{USING}\n{CHANNEL.format(0)}".replace("NET/IB", f"NET/{network}")
    assert read_nccl_devices(log).used == ("mlx5_0",)


def test_a_channel_that_no_list_names() -> None:
    """Then the devices in use are not known."""
    assert read_nccl_devices(f"{USING}\n{CHANNEL.format(0)}\n{CHANNEL.format(7)}").used == ()
    assert read_nccl_devices(CHANNEL.format(0)) == NcclDevices()


def test_roce_and_merged_devices() -> None:
    """RoCE has another ending, and two ports that NCCL joins are one device."""
    log = "NET/IB : Using [0]mlx5_0:1/RoCE [1]mlx5_1+mlx5_2:1/RoCE [RO]; OOB eth0"
    assert read_nccl_devices(log).available == ("mlx5_0", "mlx5_1+mlx5_2")


def test_the_memory_of_the_node() -> None:
    """GPUs without NVLink may use it."""
    log = "n:1:1 [0] NCCL INFO Channel 00 : 0[0] -> 1[1] via SHM/direct/direct"
    assert read_nccl_devices(log).through_host_memory is True
