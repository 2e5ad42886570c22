from __future__ import annotations

import json
import re
from textwrap import wrap

from jsonschema import Draft202012Validator

from webhook.model.fabric_findings import CODES
from webhook.model.finding import Finding, Location
from webhook.model.inventory import FabricCapacity, FabricInventory, UnassignedNodes
from webhook.preview.fabrics.record import anonymous_form, fabrics_form, fabrics_schema
from webhook.preview.fabrics.text import anonymous_text, fabrics_text

#: The general remedy of each code.
REMEDIES = {code.code: code.remedy for code in CODES}
NODES = tuple(f"node-{number}" for number in range(1, 6))
LACKING = "the GPU nvidia.com/v100, but not rdma/v100"
V100 = FabricCapacity(
    name="v100-ib",
    nodes=NODES,
    unavailable_nodes=("node-6", "node-7"),
    nodes_without_resource=("node-5",),
    gpus={"nvidia.com/v100": 40},
    resources={"rdma/v100": 252},
    free={"nvidia.com/v100": 8, "rdma/v100": 200},
    findings=(
        Finding(
            *("error", "NodeWithoutResource", f"1 node has {LACKING}", "Check the plugin."),
            Location(nodes=("node-5",)),
        ),
    ),
)
EMPTY = FabricCapacity(
    name="h100",
    nodes=(),
    unavailable_nodes=(),
    nodes_without_resource=(),
    gpus={},
    resources={"rdma/h100": 0},
    free={"rdma/h100": 0},
    findings=(Finding("error", "FabricWithoutNodes", "no node belongs to the fabric"),),
)
INVENTORY = FabricInventory(
    fabrics=(V100, EMPTY),
    unassigned_nodes=(
        UnassignedNodes(("p1", "p2"), (), "v100-ib", "nvidia.com/v100 is not offered"),
        UnassignedNodes(("b",), ("x", "y"), "", "nvidia.com/gpu matches all of them"),
        UnassignedNodes(("c",), (), "", "there are no fabrics"),
    ),
    nodes=10,
    unrelated_nodes=1,
)


def test_the_table_and_the_findings() -> None:
    """A line for each fabric, each problem, and each kind of node outside."""
    lines = fabrics_text(INVENTORY, width=240).splitlines()
    assert [re.split(" {2,}", line) for line in lines[:3]] == [
        ["fabric", "nodes", "GPUs", "RDMA resources", "free", "node names"],
        [
            *("v100-ib", "5 of 7", "nvidia.com/v100: 40", "rdma/v100: 252"),
            *("nvidia.com/v100: 8, rdma/v100: 200", "node-1, node-2, node-3 and 2 more"),
        ],
        ["h100", "0", "none", "rdma/h100: 0", "rdma/h100: 0"],
    ]
    without, several = (INVENTORY.findings[number].remedy for number in (0, 1))
    assert lines[3:] == [
        f"  ✘ v100-ib: 1 node has {LACKING} (node-5) [NodeWithoutResource]",
        "    → Check the plugin.",
        "  ✘ h100: no node belongs to the fabric [FabricWithoutNodes]",
        (
            "  ✘ 2 nodes match no fabric (nearest: v100-ib): nvidia.com/v100 is not offered (p1, "
            "p2) [NodeWithoutFabric]"
        ),
        f"    → {without}",
        "  ✘ 1 node matches x and y: nvidia.com/gpu matches all of them (b) [NodeInSeveralFabrics]",
        f"    → {several}",
        "  ✘ 1 node matches no fabric: there are no fabrics (c) [NodeWithoutFabric]",
        f"    → {without}",
        (
            "10 nodes in total (1 of them offers no GPU and no RDMA resource, "
            "and matches no fabric's labels)"
        ),
    ]


def test_without_pods_the_free_amounts_are_left_out() -> None:
    """The column is missing; `wide` names all nodes."""
    inventory = INVENTORY._replace(
        fabrics=(V100._replace(free=None),), unassigned_nodes=(), nodes=1, unrelated_nodes=2
    )
    table, row, *_, last = fabrics_text(inventory, width=200, wide=True).splitlines()
    assert table.split("  ")[-1] == "node names"
    assert "free" not in table
    assert row.endswith("node-1, node-2, node-3, node-4, node-5")
    assert last == (
        "1 node in total "
        "(2 of them offer no GPU and no RDMA resource, and match no fabric's labels)"
    )


def test_devices_that_no_fabric_lists_are_named() -> None:
    """A node with a NIC that no fabric lists has one, so the line does not deny it."""
    devices = {"amd.com/gpu": 2, "vpc.amazonaws.com/efa": 1}
    inventory = FabricInventory((), (), 5, 5, devices)
    assert fabrics_text(inventory, width=300).splitlines()[-1] == (
        "5 nodes in total (5 of them offer no GPU and no RDMA resource that a fabric lists, and "
        "match no fabric's labels; no fabric lists amd.com/gpu (2 nodes), vpc.amazonaws.com/efa "
        "(1 node))"
    )
    many = FabricInventory((), (), 1, 1, {f"amd.com/{letter}": 1 for letter in "abcdefghi"})
    line = fabrics_text(many, width=500).splitlines()[-1]
    assert line.endswith("amd.com/h (1 node) and 1 more)")
    assert fabrics_form(many)["unlistedDevices"]["amd.com/i"] == 1


def test_nodes_outside_are_named_as_in_the_table() -> None:
    """Three and a count; all of them with `wide`."""
    outside = UnassignedNodes(NODES, (), "", "there are no fabrics")
    inventory = FabricInventory((), (outside,), 5, 0)
    short, every = (fabrics_text(inventory, width=200, wide=wide) for wide in (False, True))
    text = "✘ 5 nodes match no fabric: there are no fabrics"
    assert f"{text} (node-1, node-2, node-3 and 2 more) [NodeWithoutFabric]\n" in short
    assert f"{text} ({', '.join(NODES)}) [NodeWithoutFabric]\n" in every


def test_colors_repeat_the_text() -> None:
    """Names of fabrics are bold, errors have a red sign, the sum is dim."""
    bold, dim, red, end = "\x1b[1m", "\x1b[2m", "\x1b[1;31m", "\x1b[0m"
    lines = fabrics_text(INVENTORY, width=160, color=True).splitlines()
    code = f"{dim} [FabricWithoutNodes]{end}"
    assert lines[1].startswith(f"{bold}v100-ib{end} ")
    assert lines[5] == f"  {red}✘{end} {bold}h100: {end}no node belongs to the fabric{code}"
    assert lines[-1] == f"{dim}{fabrics_text(INVENTORY, width=160).splitlines()[-1]}{end}"


def test_anonymous_text_names_no_node() -> None:
    """The anonymous form does not either; the remedies name the command that does."""
    lines = anonymous_text(INVENTORY, width=160).splitlines()
    assert [re.split(" {2,}", line) for line in lines[:3]] == [
        ["fabric", "nodes", "GPUs", "RDMA resources"],
        ["v100-ib", "5 of 7", "nvidia.com/v100: 40", "rdma/v100: 252"],
        ["h100", "0", "none", "rdma/h100: 0"],
    ]
    assert lines[3:] == [
        f"  ✘ v100-ib: 1 node has {LACKING} [NodeWithoutResource]",
        f"    → {REMEDIES['NodeWithoutResource']}",
        "  ✘ h100: no node belongs to the fabric [FabricWithoutNodes]",
        *wrap(
            REMEDIES["FabricWithoutNodes"],
            *(160,),
            initial_indent="    → ",
            subsequent_indent="      ",
        ),
    ]
    assert REMEDIES["NodeWithoutResource"].endswith("which `rdma-webhook fabrics` names.")


def test_without_fabrics() -> None:
    """There is no table."""
    none = FabricInventory((), (), 3, 0)
    assert fabrics_text(none, width=80) == "There are no fabrics.\n3 nodes in total\n"


def test_the_json_form_fits_its_schema() -> None:
    """With free amounts, and without."""
    validator = Draft202012Validator(json.loads(fabrics_schema()))
    form = fabrics_form(INVENTORY)
    validator.validate(form)
    assert form["fabrics"][0]["free"] == {"nvidia.com/v100": 8, "rdma/v100": 200}
    assert form["fabrics"][0]["findings"][0]["location"] == {"nodes": ["node-5"]}
    assert [finding["code"] for finding in form["findings"]] == [
        "NodeWithoutFabric",
        "NodeInSeveralFabrics",
        "NodeWithoutFabric",
    ]
    assert form["well"] is False
    bare = FabricInventory((V100._replace(free=None, findings=()),), (), 5, 0)
    validator.validate(fabrics_form(bare))
    assert (fabrics_form(bare)["well"], fabrics_form(bare)["fabrics"][0]["free"]) == (True, None)


def test_the_anonymous_form_names_no_node() -> None:
    """Amounts and counts only."""
    form = anonymous_form(INVENTORY)
    assert "node-" not in json.dumps(form)
    assert form["fabrics"][0] == {
        "name": "v100-ib",
        "nodes": 5,
        "unavailableNodes": 2,
        "gpus": {"nvidia.com/v100": 40},
        "resources": {"rdma/v100": 252},
        "findings": [
            {
                "level": "error",
                "code": "NodeWithoutResource",
                "text": f"1 node has {LACKING}",
                "remedy": REMEDIES["NodeWithoutResource"],
                "location": {},
            }
        ],
    }
