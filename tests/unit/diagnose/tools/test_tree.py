"""A copied tree of /sys/class/infiniband."""

from __future__ import annotations

from webhook.diagnose.tools.observations import (
    CounterObservation,
    GidObservation,
    InterfaceObservation,
    Origin,
    PortObservation,
)
from webhook.diagnose.tools.readers.sysfs import read_tree

SYSFS = Origin("sysfs", 0)


def test_a_tree_is_read() -> None:
    """Files give the observations of lines with their paths; unknown and empty files give none."""
    files = {
        "mlx5_0/fw_ver": "28.39.1002\n",
        "mlx5_0/device/uevent": "DRIVER=mlx5_core\nPCI_SLOT_NAME=0000:38:00.0\n",
        "mlx5_0/device/net/ibs1/mtu": "2044\n",
        "mlx5_0/ports/1/rate": "400 Gb/sec (4X NDR)\n",
        "mlx5_0/ports/1/state": "",
        "mlx5_0/ports/1/gids/0": "fe80:0000:0000:0000:a088:c203:0012:3456\n",
        "mlx5_0/ports/1/counters/link_downed": "4\n",
        "mlx5_0/power/control": "auto\n",
        "README": "a tree of gpu-01\n",
    }
    assert set(read_tree(files)) == {
        PortObservation(
            SYSFS, "mlx5_0", netdevs=("ibs1",), pci="0000:38:00.0", firmware="28.39.1002"
        ),
        PortObservation(SYSFS, "mlx5_0", 1, rate_gbps=400.0),
        GidObservation(SYSFS, "mlx5_0", 1, 0, "fe80:0000:0000:0000:a088:c203:0012:3456"),
        CounterObservation(SYSFS, "mlx5_0", 1, "link_downed", 4),
        InterfaceObservation(SYSFS, "ibs1", mtu=2044),
    }
