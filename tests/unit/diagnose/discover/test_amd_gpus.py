"""GPUs of AMD: what tools and labels show of them, and what a fabric says about them."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from tests.unit.diagnose.discover.observed_nodes import (
    discovered,
    ethernet,
    gpus,
    interface,
    observed,
    port,
)
from webhook.diagnose.discover.gpu_products import amd_label
from webhook.diagnose.discover.inputs import NodeText, collect_script, read_texts
from webhook.diagnose.discover.plugin.files import plugin_files
from webhook.diagnose.discover.site import DiscoverOptions, GpuCount, KubeNode, SourcedObservation
from webhook.diagnose.tools.observations import GpuObservation, Origin

MI300X = "AMD-Instinct-MI300X"
LABEL = "amd.com/gpu.product-name"
LSPCI = (
    "0000:{bus}:00.0 Processing accelerators [1200]: Advanced Micro Devices, Inc. [AMD/ATI] Aqua "
    "Vanjaram [Instinct MI300X] [1002:74a1]"
)
AMD_SMI = "GPU: 0\n    BDF: 0000:05:00.0\n    UUID: 2eff74a1-0000-1000-8067-6cbd4a2f9d31\n"


#: A row of the table of amd-smi, and of that of nvidia-smi.
AMD_ROW = "| 0000:{bus}:00.0    AMD Instinct MI300X | 0 %      40 °C   0           131/750 W |\n"
NVIDIA_ROW = (
    "|   {number}  {name:<22}      On  |   00000000:1{number}:00.0 Off |                    0 |\n"
)
H100 = "NVIDIA H100 80GB HBM3"


def lspci(count: int = 2) -> str:
    """Return lspci's lines for several MI300X."""
    return "\n".join(LSPCI.format(bus=f"0{bus}") for bus in range(count))


def read_text(text: str) -> list[SourcedObservation]:
    """Return what the tools of a text show."""
    return read_texts([NodeText("n1.txt", "n1", text)]).nodes["n1"]


def thor(device: str = "bnxt_re0") -> Any:
    """Return a RoCE port of Broadcom's Thor 2."""
    return ethernet(device, vendor_id=0x14E4, device_id=0x1760, netdevs=("ens1",))


def node(*texts: str) -> list[SourcedObservation]:
    """Return a node with a card of Broadcom, and what texts show of it."""
    return [
        *observed(thor(), interface("eno1")),
        *(sourced for text in texts for sourced in read_text(text)),
    ]


def entry_of(nodes: dict[str, Any], cluster_nodes: Any = None, **options: Any) -> dict[str, Any]:
    """Return the only fabric."""
    (entry,) = discovered(nodes, cluster_nodes or {}, **options).entries
    return dict(entry)


@pytest.mark.parametrize(
    ("text", "count"),
    [
        (lspci(8), GpuCount(MI300X, 8)),
        (f"{lspci(8)}\n{lspci(8).replace('0000:', '')}", GpuCount(MI300X, 8)),
        (AMD_SMI, GpuCount(None, 1)),
        (f"{lspci(1)}\n{AMD_SMI}", GpuCount(MI300X, 1)),
        ("GPU[0]\t\t: Card Series: \t\tAMD Instinct MI300X VF\n", GpuCount(MI300X, 1)),
        (AMD_ROW.format(bus="05") + AMD_ROW.format(bus="15"), GpuCount(MI300X, 2)),
        (lspci(1) + "\n" + AMD_ROW.format(bus="00"), GpuCount(MI300X, 1)),
    ],
    ids=["lspci", "lspci twice", "amd-smi", "both", "rocm-smi", "table", "lspci and table"],
)
def test_the_gpus_are_counted(text: str, count: GpuCount) -> None:
    """Each tool counts as evidence, and all spellings of a product are one."""
    (merged,) = discovered({"n1": node(text)}).nodes
    assert (merged.gpus, merged.findings) == ((count,), ())


def test_the_table_of_amd_smi_gives_the_resource() -> None:
    """NICs of AMD show no GPUs of AMD, but the table does."""
    assert entry_of({"n1": node(AMD_ROW.format(bus="05"))})["match"] == {
        "gpuResources": ["amd.com/gpu"]
    }


@pytest.mark.parametrize(
    ("names", "counts"),
    [
        ((H100, H100), (GpuCount("NVIDIA-H100-80GB-HBM3", 2),)),
        (("Tesla V100-SXM2...", "Tesla V100-SXM2..."), (GpuCount(None, 2),)),
        ((H100, "Tesla V100-SXM2..."), (GpuCount(None, 2),)),
    ],
)
def test_the_table_of_nvidia_smi_is_counted(
    names: tuple[str, ...], counts: tuple[GpuCount, ...]
) -> None:
    """A name that does not fit is no product, and the GPUs with a name are not all."""
    rows = (NVIDIA_ROW.format(number=at, name=name) for at, name in enumerate(names))
    (merged,) = discovered({"n1": node("".join(rows))}).nodes
    assert (merged.gpus, merged.findings, merged.amd_gpus) == (counts, (), False)


@pytest.mark.parametrize("name", ["...tinct Something Pro", "AMD Instinct MI300X"])
def test_gpus_without_a_number_are_compared_by_their_address(name: str) -> None:
    """The table of amd-smi has no number in the row of the product."""
    other = AMD_ROW.format(bus="15").replace("AMD Instinct MI300X", name)
    (merged,) = discovered({"n1": node(AMD_ROW.format(bus="05") + other)}).nodes
    product = MI300X if "..." not in name else None
    assert merged.gpus == (GpuCount(product, 2),)


def test_a_gpu_without_number_and_address_has_its_product() -> None:
    """One by its line alone is not missing among those with a product."""
    origin = Origin("nvidia-smi --query-gpu", 3)
    unnumbered = [GpuObservation(origin, product="A"), GpuObservation(origin._replace(line=4))]
    (merged,) = discovered({"n1": observed(port("mlx5_0"), unnumbered)}).nodes
    assert merged.gpus == (GpuCount("A", 1),)


def test_a_later_output_may_lack_the_product() -> None:
    """Its first output has shown the GPU's product."""
    gpu = GpuObservation(Origin("amd-smi", 3), 0, "AMD Instinct MI300X", vendor_id=0x1002)
    later = GpuObservation(Origin("amd-smi", 9), 0, vendor_id=0x1002)
    (merged,) = discovered({"n1": observed(port("mlx5_0"), gpu, later)}).nodes
    assert merged.gpus == (GpuCount(MI300X, 1),)


def test_a_product_may_be_in_another_output_of_the_tool() -> None:
    """The list of amd-smi has no product, its details have one of the same GPU."""
    static = "GPU: 0\n    ASIC:\n        MARKET_NAME: AMD Instinct MI300X\n"
    (merged,) = discovered({"n1": node(f"{AMD_SMI}\n{static}")}).nodes
    assert merged.gpus == (GpuCount(MI300X, 1),)


def test_gpus_of_nvidia_are_counted_by_their_class() -> None:
    """Lspci's names of chips are no products; their number is better than nothing."""
    line = "17:00.0 3D controller [0302]: NVIDIA Corporation GH100 [H100 SXM5 80GB] [10de:2330]\n"
    (merged,) = discovered({"n1": [*observed(port("mlx5_0")), *read_text(line)]}).nodes
    assert (merged.gpus, merged.amd_gpus) == ((GpuCount(None, 1),), False)


def test_the_fabric_has_amds_resource() -> None:
    """The default, nvidia.com/gpu, and the label of NVIDIA's discovery would match no node."""
    entry = entry_of({"n1": node(lspci())})
    assert entry["name"] == "mi300x-roce"
    assert entry["match"] == {"gpuResources": ["amd.com/gpu"]}
    (plan,) = discovered({"n1": node(lspci())}).fabrics
    assert plan.reason_by_field["match.gpuResources"] == "the resource of AMD's device plugin"


@pytest.mark.parametrize("offered", [{}, {"amd.com/gpu": 8}], ids=["not yet", "offered"])
def test_a_node_object_shows_the_gpus(offered: dict[str, int]) -> None:
    """The label of AMD's labeller has the product, the plugin their number."""
    cluster_nodes = {"n1": KubeNode("n1", {LABEL: "AMD_Instinct_MI300X_OAM"}, offered)}
    discovery = discovered({"n1": node()}, cluster_nodes)
    (merged,) = discovery.nodes
    assert merged.gpus == (GpuCount(MI300X, 8 if offered else None),)
    assert discovery.entries[0].get("match") == {"gpuResources": ["amd.com/gpu"]}
    (plan,) = discovery.fabrics
    reason = "offered by the nodes" if offered else "the resource of AMD's device plugin"
    assert plan.reason_by_field["match.gpuResources"] == reason


def test_a_nodes_own_name_of_the_resource_is_kept() -> None:
    """A site's plugin may offer partitions; the nodes' word counts, not the usual one."""
    cluster_nodes = {"n1": KubeNode("n1", {}, {"amd.com/cpx_nps4": 64})}
    entry = entry_of({"n1": node(lspci())}, cluster_nodes)
    assert entry["match"] == {"gpuResources": ["amd.com/cpx_nps4"]}


def test_one_node_object_speaks_for_all() -> None:
    """A node that kubectl's output lacks has the same GPUs."""
    cluster_nodes = {"n1": KubeNode("n1", {}, {"amd.com/gpu": 8})}
    entry = entry_of({"n1": node(lspci()), "n2": node(lspci())}, cluster_nodes)
    assert entry["match"] == {"gpuResources": ["amd.com/gpu"]}


def test_two_products_are_told_apart_by_amds_label() -> None:
    """The label has the spelling of the nodes, not of the report."""
    values = {"n1": "AMD_Instinct_MI300X_OAM", "n2": "AMD_Instinct_MI325X_OAM"}
    cluster_nodes = {
        name: KubeNode(name, {LABEL: value}, {"amd.com/gpu": 8}) for name, value in values.items()
    }
    discovery = discovered({"n1": node(), "n2": node()}, cluster_nodes)
    assert [entry["match"] for entry in discovery.entries] == [
        {"gpuResources": ["amd.com/gpu"], "nodeLabels": {LABEL: [value]}}
        for value in values.values()
    ]


def test_gpus_of_both_vendors_are_two_fabrics() -> None:
    """NVIDIA's keep their product; neither gets the other's resource."""
    nodes = {"n1": node(lspci()), "n2": [*observed(thor(), gpus(), interface("eno1"))]}
    matches = {entry["name"]: entry.get("match") for entry in discovered(nodes).entries}
    assert matches == {
        "mi300x-roce": {"gpuResources": ["amd.com/gpu"]},
        "a100-roce": {"gpuProducts": ["NVIDIA-A100-SXM4-40GB"]},
    }


def test_a_label_of_another_product_is_a_contradiction() -> None:
    """The finding names AMD's label, and the GPUs stay AMD's."""
    cluster_nodes = {"n1": KubeNode("n1", {LABEL: "AMD_Instinct_MI210"}, {})}
    discovery = discovered({"n1": node(lspci(8))}, cluster_nodes)
    (finding,) = (finding for finding in discovery.findings if finding.code == "GpuProductDiffers")
    assert finding.text == (
        f"tools show 8 {MI300X}, but the product in the node's label {LABEL} is AMD-Instinct-MI210"
    )
    assert discovery.nodes[0].amd_gpus


@pytest.mark.parametrize("device", ["ionic_0", "rdma0"], ids=["AMD's", "of unknown vendor"])
def test_nothing_is_invented_beside_what_nodes_offer(device: str) -> None:
    """Nodes that offer AMD's GPUs and NICs need no other resource, also without a known vendor."""
    fields = {} if device == "rdma0" else {"vendor_id": 0x1DD8}
    nic = ethernet(device, **{"vendor_id": None, "device_id": None, **fields})
    cluster_nodes = {"n1": KubeNode("n1", {}, {"amd.com/gpu": 8, "amd.com/nic": 8})}
    entry = entry_of({"n1": observed(nic)}, cluster_nodes)
    assert (entry["name"], entry["mode"]) == ("rdma-roce", "host-device")
    assert entry["match"] == {"gpuResources": ["amd.com/gpu"]}
    assert entry["resources"] == [
        {"name": "amd.com/nic", "count": "per-gpu", "network": "default/rdma-roce"}
    ]


def test_nvidias_cards_have_nothing_of_amds() -> None:
    """A node with AMD's GPUs and NVIDIA's cards keeps the files for these cards."""
    cluster_nodes = {"n1": KubeNode("n1", {}, {"amd.com/gpu": 8, "amd.com/nic": 8})}
    entry = entry_of({"n1": observed(port("mlx5_0"))}, cluster_nodes)
    assert entry["resources"] == [{"name": "rdma/rdma_ib"}]


@pytest.mark.parametrize(
    ("labels", "selected"),
    [
        ([{LABEL: "AMD_Instinct_MI300X_OAM"}], {LABEL: "AMD_Instinct_MI300X_OAM"}),
        ([{}], {}),
        ([{LABEL: "AMD_Instinct_MI300X_OAM"}, {LABEL: "AMD_Instinct_MI300X"}], {}),
        ([{LABEL: "AMD_Instinct_MI300X_OAM"}, None], {}),
    ],
    ids=["labeled", "not labeled", "two spellings", "one node unknown"],
)
def test_policies_select_nodes_by_labels_that_they_have(
    labels: list[dict[str, str] | None], selected: dict[str, str]
) -> None:
    """Nodes with AMD's GPUs have no label of NVIDIA's discovery."""
    nodes = {f"n{number}": node(lspci()) for number in range(len(labels))}
    cluster_nodes = {
        name: KubeNode(name, of_node, {"amd.com/gpu": 8})
        for name, of_node in zip(nodes, labels, strict=True)
        if of_node is not None
    }
    discovery = discovered(nodes, cluster_nodes, mode="sr-iov")
    file = plugin_files(discovery.accepted_fabrics, DiscoverOptions()).files[0]
    policy = next(iter(yaml.safe_load_all(file.text)))
    capable = {"feature.node.kubernetes.io/network-sriov.capable": "true"}
    assert policy["spec"]["nodeSelector"] == {**capable, **selected}


@pytest.mark.parametrize(
    ("product", "spelling"),
    [
        ("AMD Instinct MI300X VF", MI300X),
        ("AMD_Instinct_MI300X_OAM", MI300X),
        ("Instinct MI300X", MI300X),
        ("AMD_INSTINCT_MI250_MCM_OAM_AC_MBA", "AMD-Instinct-MI250"),
        ("AMD Instinct MI250X / MI250", None),
        ("AMD Radeon RX 7900 XTX", "AMD-Radeon-RX-7900-XTX"),
        ("AMD_Radeon_RX_7900_XTX", "AMD-Radeon-RX-7900-XTX"),
        ("Radeon Pro W7900", "AMD-Radeon-Pro-W7900"),
    ],
)
def test_a_product_has_one_spelling(product: str, spelling: str | None) -> None:
    """Tools and labels write the board, the virtual function, or several products of one chip."""
    assert amd_label(product) == spelling


def test_the_script_asks_amds_tools() -> None:
    """Their usual folder is on the path, and the product is asked for too."""
    script = collect_script()
    assert ":/opt/rocm/bin\n" in script
    for command in ("amd-smi list", "amd-smi static --asic --bus", "rocm-smi --showproductname"):
        assert f"tool {command}\n" in script
