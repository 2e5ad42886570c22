"""Tests of the devices in NCCL's log."""

from __future__ import annotations

import re

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
    assert read_nccl_devices(log) == NcclDevices(("mlx5_0", "mlx5_3"), ("mlx5_3",), 1)
    every = read_nccl_devices("\n".join([USING, CHANNEL.format(1), CHANNEL.format(0)]))
    assert every.used == ("mlx5_0", "mlx5_3")


def on_host(host: str, *devices: str, channels: tuple[int, ...] = (0,)) -> str:
    """Return the log of a host with these devices, and channels over some of them."""
    listed = " ".join(f"[{number}]{device}:1/IB" for number, device in enumerate(devices))
    return f"{host}:1:1 [0] NCCL INFO NET/IB : Using {listed} ; OOB eth0\n" + "".join(
        f"[1] {host}:1:2 [0] NCCL INFO Ring 00 : 7 -> 8 [send] via NET/IB/{number}/GDRDMA\n"
        for number in channels
    )


def test_hosts_that_name_their_devices_differently() -> None:
    """The numbers of a host's channels belong to its own list (NVIDIA/nccl-tests, issue 29)."""
    renamed = read_nccl_devices(on_host("server-1", "mlx5_1") + on_host("server-2", "mlx5_0"))
    assert (renamed.used, renamed.used_count) == (("mlx5_1", "mlx5_0"), 1)
    unequal = on_host("n1", "mlx5_0", "mlx5_1", channels=(1, 0)) + on_host("n2", "mlx5_9")
    devices = read_nccl_devices(unequal)
    assert (devices.used, devices.used_count) == (("mlx5_0", "mlx5_1", "mlx5_9"), 2)
    assert devices.available == ("mlx5_0", "mlx5_1")
    unlisted = on_host("n1", "mlx5_0", "mlx5_1") + CHANNEL.format(1).replace("n:1", "n2:1")
    assert read_nccl_devices(unlisted).used == ("mlx5_0", "mlx5_1")
    elsewhere = on_host("n1", "mlx5_0", "mlx5_1") + on_host("n2", "mlx5_2", channels=(1,))
    assert read_nccl_devices(elsewhere).used_count == 0


def test_a_line_without_a_host() -> None:
    """Then the longest list counts; a host is looked for only near what names the device."""
    log = on_host("n1", "mlx5_0") + "NCCL INFO Channel 00/0 : 0[0] -> 1[0] via NET/IB/0"
    assert read_nccl_devices(log).used == ("mlx5_0",)
    far = "n2:1:1 [0] " + "x" * 400 + "NET/IB : Using [0]mlx5_7:1/IB"
    assert read_nccl_devices(f"{on_host('n2', 'a', 'b', channels=(0,))}{far}").used == ("a",)


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
    two_nodes = libfabric(nics=4, joined=4, used=4) + libfabric(nics=16, joined=4)
    assert read_nccl_devices(two_nodes).available_nics == 16


def test_libfabric_that_does_not_join_nics() -> None:
    """Older plugins make each NIC a device (aws/aws-ofi-nccl, nccl_ofi_net.c); so is one alone."""
    channels = libfabric(joined=0, used=4, name="AWS Libfabric").replace("(found 32 nics)", "")
    old = re.sub(r"provider is .*", "Provider is efa", channels)
    assert read_nccl_devices(old)[2:] == (0, 0, 4, False)
    assert read_nccl_devices(old.replace("via NET", "over")).used_nics == 0
    assert read_nccl_devices(channels).used_nics == 0
    counted = old.replace("Provider is efa", "Provider is efa (found 4 nics)")
    assert read_nccl_devices(counted).used_nics == 0
    single = libfabric(nics=1, joined=0, used=1)
    assert read_nccl_devices(single).used_nics == 1


@pytest.mark.parametrize(
    "log",
    [libfabric(nics=15), libfabric(joined=0), libfabric(joined=7), "via NET/Libfabric/0"],
    ids=["uneven", "unlisted", "unknown", "alone"],
)
def test_libfabric_that_is_uncertain(log: str) -> None:
    """A number that does not fit the others counts for nothing."""
    assert read_nccl_devices(log).used_nics == 0
