"""The picture and the page: complete in themselves, escaped, and small for many nodes."""

from __future__ import annotations

from xml.etree import ElementTree as ET

from tests.unit.discover.seen import discovered, down, ethernet, gpus, near, port, seen
from webhook.discover.picture import picture
from webhook.discover.site_page import site_page

_SVG = "{http://www.w3.org/2000/svg}"


def words(svg: str) -> list[str]:
    """Return the texts of a picture, which must be well-formed."""
    root = ET.fromstring(svg)
    return ["".join(one.itertext()) for one in root.iter(f"{_SVG}text")]


def test_ports_show_their_rate_or_state() -> None:
    """Devices, rates, states and GPUs are there; a port that is not used says so."""
    bond = ethernet("mlx5_bond_0", rate_gbps=10.0, device_id=0x1015)
    nodes = {
        "n1": seen(port("mlx5_0"), bond, gpus(number=2), near("GPU0", "mlx5_0")),
        "n2": seen(down("mlx5_0"), bond, gpus(number=2), near("GPU0", "mlx5_0")),
    }
    found = words(picture(discovered(nodes).fabrics))
    assert {"n1", "n2", "200 Gb/s", "Down", "not used, 10", "InfiniBand, 200 Gb/s network"} <= {
        *found
    }


def test_equal_nodes_are_drawn_once() -> None:
    """64 nodes of which one differs are two boxes."""
    nodes = {f"n{at:02}": seen(port("mlx5_0"), gpus()) for at in range(63)}
    nodes["n63"] = seen(down("mlx5_0"), gpus())
    svg = picture(discovered(nodes).fabrics)
    assert svg.count('class="node"') == 2
    assert "n00, n01, n02 and 60 more (63 nodes)" in words(svg)


def test_names_from_nodes_are_escaped() -> None:
    """What a text says ends up as text, never as markup."""
    nodes = {"<script>&\u202e": seen(port("mlx5_0"), gpus("NVIDIA <b>&"))}
    found = discovered(nodes)
    svg = picture(found.fabrics)
    assert "<script>&\\u202e" in words(svg)
    page = site_page(found)
    assert "<script>" not in page
    assert "&lt;script&gt;&amp;\\u202e" in page
    assert "\u202e" not in page


def test_the_page_needs_nothing_else() -> None:
    """No script and no reference to another file; its policy would stop both."""
    page = site_page(discovered({"n1": seen(port("mlx5_0"), gpus())}))
    assert "default-src 'none'" in page
    assert "src=" not in page
    assert "href=" not in page
    assert "url(" not in page
    assert "prefers-color-scheme:dark" in page


def test_no_fabric_is_a_picture_too() -> None:
    """It says that there is none."""
    assert words(picture(())) == ["No fabric was found."]


def test_many_ports_stay_inside_their_box() -> None:
    """More than eight ports go on in a second row, each with its line to the network."""
    ports = [port(f"mlx5_{at}") for at in range(16)]
    svg = picture(discovered({"n1": seen(ports, gpus())}).fabrics)
    root = ET.fromstring(svg)
    (box,) = (one for one in root.iter(f"{_SVG}rect") if one.get("class") == "node")
    right = float(box.get("x", "")) + float(box.get("width", ""))
    drawn = [one for one in root.iter(f"{_SVG}rect") if one.get("class") == "fine"]
    assert len(drawn) == 16
    assert all(float(one.get("x", "")) + float(one.get("width", "")) <= right for one in drawn)
    assert sum(one.get("class") == "fine" for one in root.iter(f"{_SVG}path")) == 16
