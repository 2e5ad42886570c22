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


def libfabric(nics: int = 32, joined: int = 8, used: int = 8, name: str = "Libfabric") -> str:
    """Return the log of NCCL with its plugin for libfabric."""
    lines = [f"NCCL INFO NET/OFI Selected provider is efa, fabric is efa (found {nics} nics)"] * 2
    for number in range(joined):
        lines.append(
            f"NCCL INFO NET/{name} : GPU Direct RDMA Enabled for HCA {number} 'rdmap{number}'"
        )
    for number in range(used):
        lines.append(
            f"NCCL INFO Channel 00/0 : 3[3] -> 14[6] [send] via NET/{name}/{number}/GDRDMA"
        )
    return "\n".join(lines)


@pytest.mark.parametrize("name", ["Libfabric", "AWS Libfabric"])
def test_libfabric(name: str) -> None:
    """The plugin joins NICs to devices: a channel over one of eight uses 4 of 32 NICs."""
    for used, nics in ((8, 32), (1, 4), (0, 0)):
        devices = read_nccl_devices(libfabric(used=used, name=name))
        assert (devices.available_count, devices.used_count) == (32, nics)
        assert devices.available == devices.used == ()
    both = read_nccl_devices(libfabric(nics=4, joined=4, used=4) + libfabric(nics=16, joined=4))
    assert both.available_nics == 16


@pytest.mark.parametrize(
    "log",
    [libfabric(nics=15), libfabric(joined=0), libfabric(joined=7), "via NET/Libfabric/0"],
    ids=["uneven", "unlisted", "unknown", "alone"],
)
def test_libfabric_that_is_uncertain(log: str) -> None:
    """A number that does not fit the others counts for nothing."""
    assert read_nccl_devices(log).used_nics == 0
