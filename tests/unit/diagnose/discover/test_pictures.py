"""The picture and the page: self-contained, escaped, and small for many nodes."""

from __future__ import annotations

import math
import re
from datetime import datetime, timedelta, timezone
from typing import Any, Literal
from xml.etree import ElementTree as ET

import pytest

from tests.unit.diagnose.discover.observed_nodes import (
    IBSTAT,
    discovered,
    down,
    ethernet,
    gpus,
    near,
    node_property,
    observed,
    port,
)
from tests.unit.diagnose.verify.page_tables import tables_of
from webhook import __version__
from webhook.diagnose.discover.discovery import Discovery
from webhook.diagnose.discover.page import site_page
from webhook.diagnose.discover.svg import picture, picture_strips
from webhook.diagnose.discover.svg_parts import style
from webhook.diagnose.tools.observations import CounterObservation
from webhook.model.finding import Finding, Location
from webhook.text.web_page import colors

_SVG = "{http://www.w3.org/2000/svg}"


def page_of(discovery: Discovery) -> str:
    """Return the page, written at five past one in Berlin."""
    return site_page(discovery, datetime(2026, 11, 29, 13, 5, tzinfo=timezone(timedelta(hours=1))))


def words(svg: str) -> list[str]:
    """Return the texts of a picture, which must be well-formed."""
    root = ET.fromstring(svg)
    return ["".join(element.itertext()) for element in root.iter(f"{_SVG}text")]


def headings(page: str) -> list[str]:
    """Return the headings of the columns of a page's first table."""
    return tables_of(page)[0].columns


def row(page: str, name: str) -> list[str]:
    """Return the cells of a row of a page's first table."""
    return tables_of(page)[0].rows[name]


def test_ports_show_their_rate_or_state() -> None:
    """The picture has devices, rates, states and GPUs, and marks unused ports."""
    bond = ethernet("mlx5_bond_0", rate_gbps=10.0, device_id=0x1015)
    nodes = {
        "n1": observed(port("mlx5_0"), bond, gpus(number=2), near("GPU0", "mlx5_0")),
        "n2": observed(down("mlx5_0"), bond, gpus(number=2), near("GPU0", "mlx5_0")),
    }
    texts = words(picture(discovered(nodes)))
    assert {
        "n1",
        "n2",
        "200 Gb/s",
        "✘ Down",
        "unused, 10 Gb/s",
        "InfiniBand network, 200 Gb/s",
    } <= {*texts}


def test_equal_nodes_are_drawn_once() -> None:
    """63 equal nodes and a different one make two boxes."""
    nodes = {f"n{at:02}": observed(port("mlx5_0"), gpus()) for at in range(63)}
    nodes["n63"] = observed(down("mlx5_0"), gpus())
    svg = picture(discovered(nodes))
    assert svg.count('class="node"') == 2
    assert "n00, n01, n02 and 60 more (63 nodes)" in words(svg)


def test_names_from_nodes_are_escaped() -> None:
    """Text from nodes never becomes markup."""
    nodes = {"<script>&\u202e": observed(port("mlx5_0"), gpus("NVIDIA <b>&"))}
    discovery = discovered(nodes)
    svg = picture(discovery)
    assert "<script>&\\u202e" in words(svg)
    page = page_of(discovery)
    assert "<script>" not in page
    assert "&lt;script&gt;&amp;\\u202e" in page
    assert "\u202e" not in page


def test_the_page_needs_nothing_else() -> None:
    """No script and no reference to another file; its policy would stop both."""
    page = page_of(discovered({"n1": observed(port("mlx5_0"), gpus())}))
    assert "default-src 'none'" in page
    assert "src=" not in page
    assert "href=" not in page
    assert "url(" not in page
    assert "(prefers-color-scheme:dark)" in page


def test_the_page_has_the_findings() -> None:
    """Each has its level, its nodes, its text and its remedy; the title counts them."""
    nodes = {"n<1": observed(port("mlx5_0"), gpus()), "n2": observed(down("mlx5_0"), gpus())}
    page = page_of(discovered(nodes))
    assert "<h1>2 nodes, 1 fabric, 1 error</h1>" in page
    assert "<h2>What to fix first</h2>" in page
    sign = '<span class="sign" aria-hidden="true">✘</span><i>error</i>'
    assert f'<li class="error">{sign}<div><b>n2:</b> mlx5_0 is Down <code' in page
    assert '<code class="soft">PortIsDown</code><p class="remedy">Check the cable' in page
    assert page.index("What to fix first") < page.index("<svg")
    page = page_of(discovered({"n<1": observed(port("mlx5_0", state=None), gpus())}))
    assert "<h2>Findings</h2>" in page
    assert "<i>warning</i><div><b>n&lt;1:</b> the state of" in page


def test_no_fabric_is_a_picture_too() -> None:
    """It states that no fabric was found."""
    assert words(picture(discovered({}))) == ["No fabrics found."]


def test_many_ports_stay_inside_their_box() -> None:
    """More than eight ports continue in a second row, each with its line to the network."""
    ports = [port(f"mlx5_{at}") for at in range(16)]
    svg = picture(discovered({"n1": observed(ports, gpus())}))
    root = ET.fromstring(svg)
    (box,) = (element for element in root.iter(f"{_SVG}rect") if element.get("class") == "node")
    right = float(box.get("x", "")) + float(box.get("width", ""))
    rects = root.iter(f"{_SVG}rect")
    drawn = [rect for rect in rects if (rect.get("class"), rect.get("width")) == ("fine", "100")]
    assert len(drawn) == 16
    assert all(
        float(element.get("x", "")) + float(element.get("width", "")) <= right for element in drawn
    )
    assert sum(element.get("class") == "fine" for element in root.iter(f"{_SVG}path")) == 16


def test_many_long_names_fit_into_their_box() -> None:
    """The title has as many names as fit, and the number of all; the tooltip has the report's."""
    name = "gpu-superpod-rack{:02}.cluster.some-sites.example.com"
    nodes = {name.format(at): observed(port("mlx5_0"), gpus()) for at in range(64)}
    svg = picture(discovered(nodes))
    first, second = name.format(0), name.format(1)
    assert f"</title>64 nodes: {first[:48]}…</text>" in svg
    assert f"<title>{first}, {second}, {name.format(2)} and 61 more (64 nodes)</title>" in svg


def test_a_long_name_of_a_device_is_set_closer() -> None:
    """The letters stay within the port; above twenty, they are cut, with a full tooltip."""
    nodes = {"n1": observed(port("mlx5_0"), port("rdmaP23800p0s2"), port("x" * 30), gpus())}
    svg = picture(discovered(nodes))
    assert re.search(r'textLength="94" lengthAdjust="spacingAndGlyphs">rdmaP23800p0s2<', svg)
    assert f"<title>{'x' * 30}</title>{'x' * 19}…</text>" in svg
    assert not re.search(r"textLength[^>]*>mlx5_0<", svg)


def test_without_gpus_there_is_no_room_for_them() -> None:
    """The words of a node are directly below its ports."""

    def height(*observations: Any) -> int:
        svg = picture(discovered({"n1": observed(port("mlx5_0"), *observations)}))
        match = re.search(r'class="node"[^>]* height="(\d+)"', svg)
        assert match
        return int(match[1])

    assert height(gpus(number=1)) - height() == 78


def test_lines_pass_a_second_row_of_ports() -> None:
    """The line from a first-row port to its GPU passes left of the second row, not under it."""
    names = [f"mlx5_{at}" for at in range(16)]
    near_all = [near(f"GPU{at // 2}", name) for at, name in enumerate(names)]
    nodes = {"n1": observed(*map(port, names), near_all, gpus())}
    drawn = re.findall(r'class="pix" d="([^"]+)"', picture(discovered(nodes)))
    next_to = [path for path in drawn if re.fullmatch(r"M\d+ \d+V\d+H\d+V\d+L\d+ \d+V\d+", path)]
    below = [path for path in drawn if re.fullmatch(r"M\d+ \d+V\d+L\d+ \d+V\d+", path)]
    assert (len(next_to), len(below)) == (8, 8)


def test_the_page_lists_nodes_in_no_fabric() -> None:
    """Each has its reason, as in the report."""
    nodes = {"n1": observed(port("mlx5_0"), gpus()), "n2": observed(gpus())}
    page = page_of(discovered(nodes))
    nodes_without = "<ul>\n<li><b>n2</b>: no tool shows an RDMA device</li>\n</ul>"
    assert f"<h2>Nodes without a fabric</h2>\n{nodes_without}" in page
    assert "without a fabric" not in page_of(discovered({"n1": nodes["n1"]}))


def test_a_known_machine_type_is_shown() -> None:
    """Without any, the table has no column for it."""
    nodes = {"n1": observed(port("mlx5_0"), gpus(), node_property("product", "DGXA100"))}
    page = page_of(discovered(nodes))
    assert headings(page)[:3] == ["Nodes", "Machine type", "GPUs"]
    assert row(page, "n1")[:2] == ["DGX A100", "8 NVIDIA-A100-SXM4-40GB"]
    page = page_of(discovered({"n1": observed(port("mlx5_0"), gpus())}))
    assert headings(page)[:2] == ["Nodes", "GPUs"]
    assert row(page, "n1")[0] == "8 NVIDIA-A100-SXM4-40GB"


def paths(svg: str, kind: str) -> list[str]:
    """Return the lines of a kind."""
    return re.findall(rf'<path class="{kind}" d="([^"]+)"', svg)


def test_a_line_to_each_gpu_behind_the_same_switches() -> None:
    """PIX and PXB differ in style; there is no line for longer ways, nor for an unused port."""
    bond = ethernet("mlx5_bond_0", rate_gbps=10.0, device_id=0x1015)
    topology = [
        near("GPU0", "mlx5_0"),
        near("GPU1", "mlx5_0", "PXB"),
        near("GPU2", "mlx5_0", "PHB"),
        near("GPU0", "mlx5_bond_0"),
        near("GPU1", "mlx5_bond_0", "PXB"),
        near("GPU2", "mlx5_bond_0", "NODE"),
    ]
    nodes = {"n1": observed(port("mlx5_0"), bond, gpus(number=3), topology)}
    svg = picture(discovered(nodes))
    legend_line = "h18"
    assert len([line for line in paths(svg, "pix") if legend_line not in line]) == 1
    assert len([line for line in paths(svg, "pxb") if legend_line not in line]) == 1
    kinds = set(re.findall(r'<path class="(\w+)"', svg))
    assert kinds == {"pix", "pxb", "fine", "trunk"}


def test_a_tooltip_has_what_is_known_of_a_port() -> None:
    """Its rate, its GPUs with their distance, and the sentences of findings."""
    nodes = {
        "n1": observed(port("mlx5_0"), port("mlx5_1"), gpus(), near("GPU0", "mlx5_0")),
        "n2": observed(down("mlx5_0"), port("mlx5_1"), gpus()),
    }
    svg = picture(discovered(nodes))
    assert "<g><title>mlx5_0: 200 Gb/s\nnearest: GPU0 (PIX)</title>" in svg
    assert "<g><title>mlx5_1: 200 Gb/s</title>" in svg
    assert "<g><title>mlx5_0: Down\n✘ mlx5_0 is Down</title>" in svg


def test_the_legend_explains_what_is_drawn_and_nothing_else() -> None:
    """A fabric without faults has one kind of port."""
    nodes = {"n1": observed(port("mlx5_0"), gpus(number=1), near("GPU0", "mlx5_0"))}
    gpu = "GPU, with its number in nvidia-smi"
    meanings = ["Active", gpu, "at most one PCIe bridge to the GPU (PIX)"]
    assert words(picture(discovered(nodes)))[-3:] == meanings
    complete = [port("mlx5_0"), port("mlx5_1"), port("mlx5_2")]
    slow = [*complete[:2], port("mlx5_2", rate_gbps=100.0)]
    nodes = {"n1": observed(complete, gpus()), "n2": observed(slow, gpus())}
    signs = ["✘", "does not work as it should"]
    meanings = ["Active", "not Active, or slower than the fabric", gpu, *signs]
    assert words(picture(discovered(nodes)))[-5:] == meanings
    counter = CounterObservation(IBSTAT, "mlx5_0", 1, "symbol_error", 1)
    svg = picture(discovered({"n1": observed(port("mlx5_0"), counter)}))
    assert words(svg)[-3:] == ["Active", "!", "works, but should be corrected"]


def test_a_missing_card_is_drawn() -> None:
    """Where other nodes have it, without a line to the network; the finding is below the node."""
    complete = observed(port("mlx5_0"), port("mlx5_1"), gpus(number=2))
    nodes = {"n1": complete, "n2": complete, "n3": observed(port("mlx5_1"), gpus(number=2))}
    svg = picture(discovered(nodes))
    assert svg.count('class="missing"') == 2  # and in the legend
    assert paths(svg, "missing") == []
    assert "✘ missing" in words(svg)
    line = (
        "✘ mlx5_0 is missing: only 1 of the fabric's devices is present, but 2 other nodes have 2"
    )
    assert any(text.endswith(line) or text.startswith(line[:30]) for text in words(svg))
    page = page_of(discovered(nodes))
    assert row(page, "n3✘error CardMissing")[-2:] == ["✘error missing", "200"]


def test_words_of_findings_make_ports_higher() -> None:
    """They are in the port, below its rate; GPUs are below all ports."""

    def heights(*observations: Any) -> set[str]:
        svg = picture(discovered({"n1": observed(port("mlx5_0"), port("mlx5_1"), *observations)}))
        return set(re.findall(r'class="fine" x="\d+" y="\d+" width="100" height="(\d+)"', svg))

    counter = CounterObservation(IBSTAT, "mlx5_0", 1, "symbol_error", 1)
    assert heights() == {"44"}
    assert heights(counter) == {"60"}
    svg = picture(discovered({"n1": observed(port("mlx5_0"), counter)}))
    assert "! errors counted" in words(svg)


def test_at_most_three_lines_of_findings_below_a_node() -> None:
    """Of more, the last line counts the others, and its tooltip has them."""
    ports = [port("mlx5_0"), *(port(f"mlx5_{at}", state=None, rate_gbps=None) for at in (1, 2))]
    discovery = discovered({"n1": observed(ports)})
    texts = ("one", "two", "three", "four")
    findings = [Finding("error", text, text, "", Location(nodes=("n1",))) for text in texts]

    def lines(count: int) -> list[str]:
        svg = picture(discovery._replace(findings=tuple(findings[:count])))
        return re.findall('<text class="error" [^>]*>(.*?)</text>', svg, re.DOTALL)

    assert lines(3) == ["✘ one", "✘ three", "✘ two"]
    tooltip = "<title>✘ three\\n✘ two</title>"
    assert lines(4) == ["✘ four", "✘ one", f"{tooltip}and 2 more findings"]


def test_the_page_ends_no_sheet_within_a_box() -> None:
    """On the page, each row of boxes is an SVG of its own; together they are the picture."""
    nodes = {
        f"n{at}": observed(port("mlx5_0", firmware=f"20.{at}"), gpus(number=1)) for at in range(7)
    }
    discovery = discovered(nodes)
    strips = list(picture_strips(discovery))
    boxes = [re.findall("view[bB]ox=.0 (.*?) 1120 (.*?).( |>)", strip)[0][:2] for strip in strips]
    tops, heights = zip(*(map(int, box) for box in boxes), strict=True)
    assert len(strips) == 4
    assert [*tops[1:], sum(heights)] == [
        top + height for top, height in zip(tops, heights, strict=True)
    ]
    assert f'height="{sum(heights)}"' in picture(discovery)
    assert [strip.count("<style>") for strip in strips] == [1, 0, 0, 0]
    assert ["role=" in strip for strip in strips] == [True, False, False, False]
    assert all("aria-hidden" in strip for strip in strips[1:])
    for strip in strips:
        ET.fromstring(strip)


def test_the_line_of_the_network_reaches_the_last_row() -> None:
    """It passes each row but the last, where it turns to the ports."""
    nodes = {
        f"n{at}": observed(port("mlx5_0", firmware=f"20.{at}"), gpus(number=1)) for at in range(7)
    }
    first, second, last, _ = picture_strips(discovered(nodes))
    bottoms = []
    for strip in (first, second, last):
        (trunk,) = paths(strip, "trunk")
        match = re.fullmatch(r"M32 (\d+)V(\d+)M32 (\d+)H\d+", trunk)
        assert match
        start, end, turn = map(int, match.groups())
        bottoms.append((start, end))
        assert start < turn <= end
    assert bottoms[0][1] == bottoms[1][0]
    assert bottoms[1][1] == bottoms[2][0]
    assert bottoms[2][1] - bottoms[2][0] == 48


def test_a_marked_cell_has_its_sign() -> None:
    """The table of the page needs no colors, either."""
    nodes = {
        "n1": observed(port("mlx5_0"), port("mlx5_1"), gpus()),
        "n2": observed(
            down("mlx5_0"),
            port("mlx5_1"),
            gpus(),
            CounterObservation(IBSTAT, "mlx5_1", 1, "symbol_error", 1),
        ),
    }
    page = page_of(discovered(nodes))
    assert headings(page) == ["Nodes", "GPUs", "Firmware", "mlx5_0", "mlx5_1"]
    assert row(page, "n1")[-2:] == ["200", "200"]
    assert row(page, "n2")[-2:] == ["✘error Down", "200!warning errors counted"]


def test_firmware_that_does_not_fit_has_its_own_line() -> None:
    """It is not cut: a finding may be about it."""
    for product, lines in (
        ("A100", ["1 A100, firmware 20.38.1900"]),
        ("NVIDIA A100-SXM4-40GB", ["1 NVIDIA-A100-SXM4-40GB", "firmware 20.38.1900"]),
    ):
        nodes = {"n1": observed(port("mlx5_0", firmware="20.38.1900"), gpus(product, 1))}
        texts = words(picture(discovered(nodes)))
        assert [text for text in texts if "A100" in text or "firmware" in text][1:] == lines


def test_firmware_has_its_own_line_only_where_it_needs_one() -> None:
    """A box for a port and eight GPUs has room for 59 letters."""
    for length, count in ((36, 1), (37, 2)):
        nodes = {"n1": observed(port("mlx5_0", firmware="20.38.1900"), gpus("X" * length))}
        texts = words(picture(discovered(nodes)))
        assert len([text for text in texts if "firmware" in text or "XXX" in text][1:]) == count


def test_no_gpu_is_below_an_unused_port() -> None:
    """All are in a row if one of them is near no port that the fabric uses."""
    bond = ethernet("mlx5_bond_0", rate_gbps=10.0, device_id=0x1015)
    topology = [near("GPU0", "mlx5_0"), near("GPU1", "mlx5_bond_0", "NODE")]
    svg = picture(discovered({"n1": observed(port("mlx5_0"), bond, gpus(number=2), topology)}))
    (first, *_), (second, *_) = boxes_of(svg, "gpu")
    assert second - first == 56


def test_the_legend_has_as_many_lines_as_it_needs() -> None:
    """No symbol and no meaning is beyond the edge of the picture."""
    topology = [near("GPU0", "mlx5_0"), near("GPU1", "mlx5_0", "PXB")]
    bond = ethernet("mlx5_bond_0", rate_gbps=10.0, device_id=0x1015)
    ports = [port("mlx5_0"), port("mlx5_1"), port("mlx5_2")]
    lacking = [port("mlx5_0"), down("mlx5_1")]
    nodes = {f"n{at}": observed(ports, bond, gpus(), topology) for at in range(2)}
    *_, legend = picture_strips(discovered({**nodes, "n2": observed(lacking, bond, gpus())}))
    drawn = re.findall(r'<text class="soft" x="(\d+)" y="(\d+)">([^<]*)<', legend)
    assert len(drawn) == 8
    assert len({y for _, y, _ in drawn}) == 2
    assert all(int(x) + 6.5 * len(meaning) < 1120 for x, _, meaning in drawn)


def test_the_header_has_the_time_and_the_version() -> None:
    """The time is in UTC."""
    page = page_of(discovered({"n1": observed(port("mlx5_0"))}))
    assert f"discover {__version__} · " in page
    assert '<span class="whole">2026-11-29</span> 12:05 UTC</p>' in page


def test_the_page_says_what_to_do_with_the_file() -> None:
    """Unless it has no fabric."""
    sentence = '<p class="next">Next: '
    assert sentence in page_of(discovered({"n1": observed(port("mlx5_0"), gpus())}))
    assert sentence not in page_of(discovered({"n1": observed(gpus())}))


def boxes_of(svg: str, *kinds: str) -> list[tuple[int, int, int, int]]:
    """Return the left, top, right and bottom of rectangles of some kinds, without the legend's."""
    pattern = r'<rect class="(\w+)" x="(\d+)" y="(\d+)" width="(\d+)" height="(\d+)"'
    drawn = re.findall(pattern, svg)
    sizes = [tuple(map(int, numbers)) for kind, *numbers in drawn if kind in kinds]
    return [(x, y, x + width, y + height) for x, y, width, height in sizes if width > 18]


def points_of(line: str) -> list[tuple[float, float]]:
    """Return points along a line, a pixel apart or less."""
    points: list[tuple[float, float]] = []
    x = y = 0.0
    for command, first, second in re.findall(r"([MLVvH])(-?\d+)(?: (-?\d+))?", line):
        to = {
            "V": (x, float(first)),
            "v": (x, y + float(first)),
            "H": (float(first), y),
        }.get(command) or (float(first), float(second))
        steps = 1 if command == "M" else round(max(abs(to[0] - x), abs(to[1] - y)))
        start = to if command == "M" else (x, y)
        points += [
            (start[0] + (to[0] - start[0]) * at / steps, start[1] + (to[1] - start[1]) * at / steps)
            for at in range(steps + 1)
        ]
        x, y = to
    return points


def distance(point: tuple[float, float], box: tuple[int, int, int, int]) -> float:
    """Return the distance of a point from a box; 0 inside."""
    left, top, right, bottom = box
    across = max(left - point[0], 0, point[0] - right)
    along = max(top - point[1], 0, point[1] - bottom)
    return math.hypot(across, along)


@pytest.mark.parametrize("count", [8, 16])
def test_lines_keep_clear_of_other_boxes(count: int) -> None:
    """A line touches the port and the GPU at its ends, and keeps 12 pixels from all others."""
    names = [f"mlx5_{at}" for at in range(count)]
    ports = [port(name) for name in names]
    topology = [
        near(f"GPU{at * 8 // count ^ other}", name, "PXB" if other else "PIX")
        for at, name in enumerate(names)
        for other in (0, 1)
    ]
    bond = ethernet("mlx5_bond_0", rate_gbps=10.0, device_id=0x1015)
    svg = picture(discovered({"n1": observed(ports, bond, gpus(), topology)}))
    drawn = boxes_of(svg, "fine", "gpu", "unused")
    assert len(drawn) == count + 8 + 1
    legend = "h18"
    to_gpus = [line for kind in ("pix", "pxb") for line in paths(svg, kind) if legend not in line]
    assert len(to_gpus) == 2 * count
    for line in (*to_gpus, *paths(svg, "fine")):
        points = points_of(line)
        near_boxes = [box for box in drawn if min(distance(at, box) for at in points) < 12]
        ends = [box for box in drawn if 0 in (distance(points[0], box), distance(points[-1], box))]
        assert near_boxes == ends
    for line in to_gpus:
        left, _, right, bottom = min(drawn, key=lambda box: distance(points_of(line)[0], box))
        assert points_of(line)[0] == ((left + right) / 2, bottom)


def test_unused_devices_are_below_all_others() -> None:
    """They are not among the ports of the fabric, nor where lines to GPUs are."""
    bonds = [ethernet(f"mlx5_bond_{at}", rate_gbps=10.0, device_id=0x1015) for at in range(9)]
    nodes = {"n1": observed(port("mlx5_0"), bonds, gpus(number=1), near("GPU0", "mlx5_0"))}
    svg = picture(discovered(nodes))
    (_, _, _, gpu_bottom), *_ = boxes_of(svg, "gpu")
    unused = boxes_of(svg, "unused")
    assert len(unused) == 9
    assert min(top for _, top, _, _ in unused) == gpu_bottom + 24
    (_, _, right, bottom) = boxes_of(svg, "node")[0]
    assert max(box[2] for box in unused) < right
    assert max(box[3] for box in unused) < bottom - 24


def test_names_are_at_the_top_left_of_their_box() -> None:
    """Above the line of the network, which crosses no name."""
    svg = picture(discovered({"n1": observed(port("mlx5_0"), gpus(number=1))}))
    (left, top, _, _), *_ = boxes_of(svg, "node")
    assert f'<text class="name" x="{left + 24}" y="{top + 21}">n1</text>' in svg
    (trunk,) = paths(svg, "trunk")
    assert f" {top + 32}H" in trunk


def test_gpus_have_their_name() -> None:
    """It is wider than their number, and fits."""
    texts = words(picture(discovered({"n1": observed(port("mlx5_0"), gpus(number=2))})))
    assert {"GPU 0", "GPU 1"} <= {*texts}


def contrast(first: str, second: str) -> float:
    """Return the contrast of two colors, such as #ffffff, as WCAG defines it."""

    def luminance(color: str) -> float:
        channels = [int(color[at : at + 2], 16) / 255 for at in (1, 3, 5)]
        red, green, blue = (
            channel / 12.92 if channel <= 0.04045 else ((channel + 0.055) / 1.055) ** 2.4
            for channel in channels
        )
        return 0.2126 * red + 0.7152 * green + 0.0722 * blue

    low, high = sorted((luminance(first), luminance(second)))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_lines_are_seen(scheme: Literal["light", "dark"]) -> None:
    """Lines to GPUs have a contrast of at least 3 with the box behind them."""
    palette = colors(scheme)
    assert contrast(palette["wire"], palette["box"]) >= 3
    assert f"stroke:{palette['wire']}" in style()
    assert ".site path.pxb{stroke-width:1.5;stroke-dasharray:2 3}" in style()
