"""Every code of discover has a smallest site that gives it, and no site gives another one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import pytest

from tests.unit.diagnose.discover.observed_nodes import (
    discovered,
    down,
    ethernet,
    gpus,
    node_property,
    observed,
    port,
)
from webhook.diagnose.discover.cluster import cluster_findings
from webhook.diagnose.discover.codes import CODES
from webhook.diagnose.discover.site import KubeNode, SourcedObservation
from webhook.diagnose.tools.observations import (
    CableObservation,
    CardObservation,
    CounterObservation,
    GidObservation,
    InterfaceObservation,
    Origin,
    PcieLink,
    PortObservation,
    ToolFailure,
)
from webhook.model.finding import Finding, Level, Location

_ORIGIN = Origin("sysfs", 0)
_NODE = observed(port("mlx5_0", pci="0000:3b:00.0"), gpus())
_TWO_PORTS = observed(port("mlx5_0"), port("mlx5_1"), gpus())
_ON_N1 = Location(nodes=("n1",))
_AT_PORT = Location(nodes=("n1",), device="mlx5_0")


def _card(pci: str, link: PcieLink | None = None) -> CardObservation:
    return CardObservation(_ORIGIN, pci, 0x0207, 0x15B3, 0x101B, link=link)


def _cable(complaint: str) -> CableObservation:
    return CableObservation(_ORIGIN, "n1", "mlx5_0", 1, 100.0, "sw1", 7, complaint)


def _counter() -> CounterObservation:
    return CounterObservation(_ORIGIN, "mlx5_0", 1, "symbol_error", 1)


def _gid(index: int = 0, gid: str = "fe80::1", version: str = "v1") -> GidObservation:
    return GidObservation(_ORIGIN, "mlx5_0", 1, index, gid, version)


def _roce(index: int, gid: str) -> list[SourcedObservation]:
    return observed(ethernet("mlx5_0"), _gid(index, gid, "v2"), gpus())


_IPV4, _IPV6 = "0000:0000:0000:0000:0000:ffff:0a00:0004", "2001:0db8::4"


class Faulty(NamedTuple):
    """The smallest site with a fault: node → observations, with the findings on it."""

    code: str
    level: Level
    location: Location
    nodes: Mapping[str, list[SourcedObservation]]
    options: Mapping[str, Any] = {}
    labels: Mapping[str, str] = {}


FAULTY = (
    Faulty("PortIsDown", "error", _AT_PORT,
           {"n1": observed(down("mlx5_0"), gpus()), "n2": _NODE}),
    Faulty("PortNotActive", "error", _AT_PORT,
           {"n1": observed(port("mlx5_0", state="Initializing"), gpus()), "n2": _NODE}),
    Faulty("PortsNeverUp", "warning", _ON_N1,
           {"n1": observed(port("mlx5_0"), down("mlx5_1"), gpus())}),
    Faulty("PortStateUnknown", "warning", _ON_N1,
           {"n1": observed(port("mlx5_0", state=None), gpus())}),
    Faulty("PortSlow", "error", _AT_PORT,
           {"n1": observed(port("mlx5_0", rate_gbps=100.0), port("mlx5_1"), port("mlx5_2"),
                           gpus()),
            "n2": observed(port("mlx5_0"), port("mlx5_1"), port("mlx5_2"), gpus())}),
    Faulty("CardMissing", "error", _ON_N1, {"n1": _NODE, "n2": _TWO_PORTS, "n3": _TWO_PORTS}),
    Faulty("RoceGidMissing", "error", _AT_PORT,
           {"n1": observed(ethernet("mlx5_0"), _gid(), gpus())}),
    Faulty("MtuDiffers", "warning", _AT_PORT,
           {"n1": observed(port("mlx5_0", mtu=1024), gpus()),
            "n2": observed(port("mlx5_0", mtu=4096), gpus())}),
    Faulty("MtuBelowInterface", "warning", _AT_PORT,
           {"n1": observed(ethernet("mlx5_0", mtu=1024, max_mtu=4096, netdevs=("ens1",)),
                           InterfaceObservation(_ORIGIN, "ens1", mtu=9000), gpus())}),
    Faulty("RoceGidLinkLocal", "warning", _AT_PORT, {"n1": _roce(1, "fe80::1")}),
    Faulty("RoceGidNotIpv4", "warning", _AT_PORT, {"n1": _roce(3, _IPV6), "n2": _roce(3, _IPV4)}),
    Faulty("GidIndexDiffers", "warning", _AT_PORT,
           {"n1": _roce(5, _IPV4), "n2": _roce(3, _IPV4)}),
    Faulty("FirmwareDiffers", "warning", _ON_N1,
           {"n1": observed(port("mlx5_0", firmware="20.28.1002"), gpus()),
            "n2": observed(port("mlx5_0", firmware="20.31.1014"), gpus())}),
    Faulty("PcieLinkSlow", "error", _AT_PORT,
           {"n1": [*_NODE, *observed(_card("0000:3b:00.0", PcieLink(8, 8)))]}),
    Faulty("PortErrorsCounted", "warning", _AT_PORT,
           {"n1": [*_NODE, *observed(_counter())]}),
    Faulty("CableBelowCapability", "warning", _AT_PORT,
           {"n1": [*_NODE, *observed(_cable("Could Be 4X"))]}),
    Faulty("NodeWithoutRdmaDevice", "error", _ON_N1, {"n1": observed(gpus())}),
    Faulty("LinkLayerUnknown", "error", _ON_N1,
           {"n1": observed(port("mlx5_0", link_layer=None), gpus())}),
    Faulty("CardWithoutRdmaDevice", "warning", _ON_N1,
           {"n1": [*_NODE, *observed(_card("0000:5e:00.0"))]}),
    Faulty("NodesSlower", "warning", _ON_N1,
           {"n1": observed(port("mlx5_0", rate_gbps=100.0), gpus()), "n2": _NODE}),
    Faulty("RdmaNetnsExclusive", "error", _ON_N1,
           {"n1": [*_NODE, *observed(node_property("netns", "exclusive"))]}),
    Faulty("NodeMemlockLimited", "info", _ON_N1,
           {"n1": [*_NODE, *observed(node_property("memlock", "65536"))]}),
    Faulty("PeerMemoryNotLoaded", "info", _ON_N1,
           {"n1": [*_NODE, *observed(node_property("peermem", "no"))]}),
    Faulty("DriversDiffer", "warning", _ON_N1,
           {"n1": [*_NODE, *observed(node_property("driver", "OFED"))],
            "n2": [*_NODE, *observed(node_property("driver", "inbox"))],
            "n3": [*_NODE, *observed(node_property("driver", "inbox"))]}),
    Faulty("ToolFailed", "error", _ON_N1,
           {"n1": [*_NODE, *observed(ToolFailure(_ORIGIN, "stopped", "stat failed"))]}),
    Faulty("ToolsDisagree", "warning", _AT_PORT,
           {"n1": [*_NODE, *observed(PortObservation(_ORIGIN, "mlx5_0", 1, numa=0)),
                   *observed(PortObservation(_ORIGIN, "mlx5_0", 1, numa=1), file="later.txt")]}),
    Faulty("GpuProductDiffers", "warning", _ON_N1, {"n1": _NODE},
           labels={"nvidia.com/gpu.product": "Tesla-V100-SXM2-32GB"}),
    Faulty("RoceNetworksMissing", "error", _ON_N1,
           {"n1": observed(ethernet("mlx5_0"), gpus())}, options={"mode": "shared-device"}),
)  # fmt: skip
_POLICY = {
    "kind": "NicClusterPolicy",
    "metadata": {"name": "p"},
    "spec": {"ofedDriver": {"image": "x"}},
}
_CONFIG_MAP = {
    "kind": "ConfigMap",
    "metadata": {"name": "c"},
    "data": {"config.json": '{"configList": [{"resourceName": "ib"}]}'},
}


def _slices(driver: str, **attributes: Any) -> dict[str, Any]:
    device = {"name": "nic0", "attributes": attributes}
    return {
        "kind": "ResourceSlice",
        "spec": {"driver": driver, "nodeName": "n1", "devices": [device]},
    }


OBJECTS = {
    "OperatorReplacesDriver": (_POLICY, Location()),
    "DevicePluginConfigured": (_CONFIG_MAP, Location()),
    "DraDevicesNotRdma": (_slices("disk.lab"), _ON_N1),
    "DraDriverWithoutClass": (_slices("dra.net", rdma={"bool": True}), _ON_N1),
}


@pytest.mark.parametrize("faulty", FAULTY, ids=lambda faulty: str(faulty.code))
def test_a_fault_has_its_code(faulty: Faulty) -> None:
    """Each site has a finding with the code, the level, the nodes and the device, and no other."""
    cluster_nodes = {"n1": KubeNode("n1", faulty.labels, {})} if faulty.labels else {}
    findings = discovered(faulty.nodes, cluster_nodes, **faulty.options).findings
    assert [_identity(finding) for finding in findings] == [
        (faulty.code, faulty.level, faulty.location)
    ]


@pytest.mark.parametrize(
    ("ports", "remedy"),
    [
        ([down("mlx5_0", physical_state="Disabled")], "Enable the port (ibportstate or mlxlink)"),
        ([down("mlx5_0", physical_state="Polling")], "The port finds no link partner: check"),
        ([down("mlx5_0")], "Check the cable, the transceiver and the switch port. Once"),
        ([ethernet("mlx5_0", netdevs=("ens1",)), _gid()], "Give ens1 an IP address."),
        ([ethernet("mlx5_0"), _gid()], "Give the network interface of the port an IP address."),
        ([port("mlx5_0"), down("mlx5_1")], "If the fabric is meant to use it, connect it on"),
        (
            [port("mlx5_0"), down("mlx5_1"), down("mlx5_2")],
            "If the fabric is meant to use them, connect them on",
        ),
    ],
    ids=["disabled", "polling", "down", "interface", "no interface", "unused", "several unused"],
)
def test_a_remedy_depends_on_what_the_tools_show(ports: Any, remedy: str) -> None:
    """The remedy of the code is general; the remedy of a finding names the state or the devices."""
    (finding,) = discovered({"n1": observed(ports, gpus())}).findings
    assert finding.remedy.startswith(remedy)


@pytest.mark.parametrize("code", OBJECTS)
def test_an_object_of_the_cluster_has_its_code(code: str) -> None:
    """Device plugins and DRA drivers give facts."""
    item, location = OBJECTS[code]
    assert [_identity(finding) for finding in cluster_findings([item])] == [
        (code, "info", location)
    ]


def _identity(finding: Finding) -> tuple[str, Level, Location]:
    return finding.code, finding.level, finding.location


#: The codes of test_unanswered, test_cut_outputs, test_unread_lines, test_expected and test_drift,
#: which need more than a site.
_OF_INPUTS = (
    *("HostUnanswered", "OutputCut", "DeviceNotOpened", "LinesUnread"),
    *("NodeCountDiffers", "HcaCountDiffers"),
    *("NodeGone", "NodeNew", "HcaGone", "HcaNew", "GpusChanged", "PortStateChanged"),
    *("PortRateChanged", "LinkLayerChanged", "FirmwareChanged", "PsidChanged", "MtuChanged"),
)


def test_every_code_has_a_site() -> None:
    """A code that no site gives, or that CODES lacks, fails here."""
    examples = [*(faulty.code for faulty in FAULTY), *OBJECTS, *_OF_INPUTS]
    assert sorted(examples) == sorted(code.code for code in CODES)
    assert all(code.meaning.endswith(".") for code in CODES)
    assert all(code.remedy.endswith(".") for code in CODES if code.remedy)
