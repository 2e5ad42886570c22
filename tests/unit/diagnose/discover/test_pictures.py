"""The picture and the page: self-contained, escaped, and small for many nodes."""

from __future__ import annotations

import re
from typing import Any
from xml.etree import ElementTree as ET

from tests.unit.diagnose.discover.observed_nodes import (
    discovered,
    down,
    ethernet,
    gpus,
    near,
    node_property,
    observed,
    port,
)
from webhook.diagnose.discover.page import site_page
from webhook.diagnose.discover.svg import picture

_SVG = "{http://www.w3.org/2000/svg}"


def words(svg: str) -> list[str]:
    """Return the texts of a picture, which must be well-formed."""
    root = ET.fromstring(svg)
    return ["".join(element.itertext()) for element in root.iter(f"{_SVG}text")]


def test_ports_show_their_rate_or_state() -> None:
    """The picture has devices, rates, states and GPUs, and marks unused ports."""
    bond = ethernet("mlx5_bond_0", rate_gbps=10.0, device_id=0x1015)
    nodes = {
        "n1": observed(port("mlx5_0"), bond, gpus(number=2), near("GPU0", "mlx5_0")),
        "n2": observed(down("mlx5_0"), bond, gpus(number=2), near("GPU0", "mlx5_0")),
    }
    texts = words(picture(discovered(nodes).fabrics))
    assert {"n1", "n2", "200 Gb/s", "Down", "unused, 10", "InfiniBand network, 200 Gb/s"} <= {
        *texts
    }


def test_equal_nodes_are_drawn_once() -> None:
    """63 equal nodes and a different one make two boxes."""
    nodes = {f"n{at:02}": observed(port("mlx5_0"), gpus()) for at in range(63)}
    nodes["n63"] = observed(down("mlx5_0"), gpus())
    svg = picture(discovered(nodes).fabrics)
    assert svg.count('class="node"') == 2
    assert "n00, n01, n02 and 60 more (63 nodes)" in words(svg)


def test_names_from_nodes_are_escaped() -> None:
    """Text from nodes never becomes markup."""
    nodes = {"<script>&\u202e": observed(port("mlx5_0"), gpus("NVIDIA <b>&"))}
    discovery = discovered(nodes)
    svg = picture(discovery.fabrics)
    assert "<script>&\\u202e" in words(svg)
    page = site_page(discovery)
    assert "<script>" not in page
    assert "&lt;script&gt;&amp;\\u202e" in page
    assert "\u202e" not in page


def test_the_page_needs_nothing_else() -> None:
    """No script and no reference to another file; its policy would stop both."""
    page = site_page(discovered({"n1": observed(port("mlx5_0"), gpus())}))
    assert "default-src 'none'" in page
    assert "src=" not in page
    assert "href=" not in page
    assert "url(" not in page
    assert "prefers-color-scheme:dark" in page


def test_the_page_has_the_findings() -> None:
    """Each has its level, its nodes, its text and its remedy; the title counts them."""
    nodes = {"n<1": observed(port("mlx5_0"), gpus()), "n2": observed(down("mlx5_0"), gpus())}
    page = site_page(discovered(nodes))
    assert "<h1>2 nodes, 1 fabric, 1 error</h1>" in page
    assert "<h2>What to fix first</h2>" in page
    assert '<li class="error">error: <b>n2</b>: mlx5_0 is Down<br><span class="remedy">' in page
    page = site_page(discovered({"n<1": observed(port("mlx5_0", state=None), gpus())}))
    assert "<h2>Findings</h2>" in page
    assert '<li class="warning">warning: <b>n&lt;1</b>: the state of' in page


def test_no_fabric_is_a_picture_too() -> None:
    """It states that no fabric was found."""
    assert words(picture(())) == ["No fabrics found."]


def test_many_ports_stay_inside_their_box() -> None:
    """More than eight ports continue in a second row, each with its line to the network."""
    ports = [port(f"mlx5_{at}") for at in range(16)]
    svg = picture(discovered({"n1": observed(ports, gpus())}).fabrics)
    root = ET.fromstring(svg)
    (box,) = (element for element in root.iter(f"{_SVG}rect") if element.get("class") == "node")
    right = float(box.get("x", "")) + float(box.get("width", ""))
    drawn = [element for element in root.iter(f"{_SVG}rect") if element.get("class") == "fine"]
    assert len(drawn) == 16
    assert all(
        float(element.get("x", "")) + float(element.get("width", "")) <= right for element in drawn
    )
    assert sum(element.get("class") == "fine" for element in root.iter(f"{_SVG}path")) == 16


def test_many_long_names_fit_into_their_box() -> None:
    """The title has as many names as fit, and the number of all; the tooltip has the report's."""
    name = "gpu-superpod-rack{:02}.cluster.example.com"
    nodes = {name.format(at): observed(port("mlx5_0"), gpus()) for at in range(64)}
    svg = picture(discovered(nodes).fabrics)
    first, second = name.format(0), name.format(1)
    assert f"</title>64 nodes: {first[:32]}…</text>" in svg
    assert f"<title>{first}, {second}, {name.format(2)} and 61 more (64 nodes)</title>" in svg


def test_a_long_name_of_a_device_is_set_closer() -> None:
    """The letters stay within the port; above twenty, they are cut, with a full tooltip."""
    nodes = {"n1": observed(port("mlx5_0"), port("rdmaP23800p0s2"), port("x" * 30), gpus())}
    svg = picture(discovered(nodes).fabrics)
    assert re.search(r'textLength="94" lengthAdjust="spacingAndGlyphs">rdmaP23800p0s2<', svg)
    assert f"<title>{'x' * 30}</title>{'x' * 19}…</text>" in svg
    assert not re.search(r"textLength[^>]*>mlx5_0<", svg)


def test_without_gpus_there_is_no_room_for_them() -> None:
    """The words of a node are directly below its ports."""

    def height(*observations: Any) -> int:
        svg = picture(discovered({"n1": observed(port("mlx5_0"), *observations)}).fabrics)
        match = re.search(r'class="node"[^>]* height="(\d+)"', svg)
        assert match
        return int(match[1])

    assert height(gpus(number=1)) - height() == 64


def test_lines_pass_a_second_row_of_ports() -> None:
    """The line from a first-row port to its GPU passes next to the second row, not under it."""
    names = [f"mlx5_{at}" for at in range(16)]
    near_all = [near(f"GPU{at // 2}", name) for at, name in enumerate(names)]
    nodes = {"n1": observed(*map(port, names), near_all, gpus())}
    drawn = re.findall(r'class="near" d="([^"]+)"', picture(discovered(nodes).fabrics))
    next_to = [path for path in drawn if re.fullmatch(r"M\d+ \d+h-2V\d+L\d+ \d+", path)]
    below = [path for path in drawn if re.fullmatch(r"M\d+ \d+L\d+ \d+", path)]
    assert (len(next_to), len(below)) == (8, 8)


def test_the_page_lists_nodes_in_no_fabric() -> None:
    """Each has its reason, as in the report."""
    nodes = {"n1": observed(port("mlx5_0"), gpus()), "n2": observed(gpus())}
    page = site_page(discovered(nodes))
    nodes_without = "<ul>\n<li><b>n2</b>: no tool shows an RDMA device</li>\n</ul>"
    assert f"<h2>Nodes without a fabric</h2>\n{nodes_without}" in page
    assert "without a fabric" not in site_page(discovered({"n1": nodes["n1"]}))


def test_a_known_machine_type_is_shown() -> None:
    """Without any, the table has no column for it."""
    nodes = {"n1": observed(port("mlx5_0"), gpus(), node_property("product", "DGXA100"))}
    page = site_page(discovered(nodes))
    assert "<th>Nodes</th><th>Machine type</th><th>GPUs</th>" in page
    assert '<td class="nodes">n1</td><td>DGX A100</td><td>8 NVIDIA-A100-SXM4-40GB</td>' in page
    page = site_page(discovered({"n1": observed(port("mlx5_0"), gpus())}))
    assert "<th>Nodes</th><th>GPUs</th>" in page
    assert '<td class="nodes">n1</td><td>8 NVIDIA-A100-SXM4-40GB</td>' in page
