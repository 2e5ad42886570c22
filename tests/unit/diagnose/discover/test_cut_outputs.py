"""An output that ends too early is an error that names where; a complete one never is."""

from __future__ import annotations

import json
from itertools import pairwise

import pytest

from tests.unit.diagnose.discover.test_discover_command import Discover, discover
from webhook.diagnose.discover.cut_outputs import CutOutput
from webhook.diagnose.discover.inputs import NodeText, read_texts

__all__ = ["discover"]


def ibstat(device: str, ports: int = 1) -> str:
    """Return the block of a device, as ibstat writes it."""
    lines = [
        f"CA '{device}'",
        "\tCA type: MT4129",
        f"\tNumber of ports: {ports}",
        "\tFirmware version: 28.39.1002",
        "\tHardware version: 0",
        "\tNode GUID: 0xa088c20300123456",
        "\tSystem image GUID: 0xa088c20300123456",
    ]
    for port in range(1, ports + 1):
        lines += [
            f"\tPort {port}:",
            "\t\tState: Active",
            "\t\tPhysical state: LinkUp",
            "\t\tRate: 400",
            "\t\tBase lid: 17",
            "\t\tLMC: 0",
            "\t\tSM lid: 1",
            "\t\tCapability mask: 0xa751e848",
            "\t\tPort GUID: 0xa088c20300123456",
            "\t\tLink layer: InfiniBand",
        ]
    return "\n".join(lines) + "\n"


def devinfo(device: str, board: str = "\tboard_id:\t\t\tMT_0000000838\n", ports: int = 1) -> str:
    """Return the block of a device, as ibv_devinfo writes it."""
    head = (
        f"hca_id:\t{device}\n\ttransport:\t\t\tInfiniBand (0)\n\tfw_ver:\t\t\t\t28.39.1002\n"
        "\tnode_guid:\t\t\ta088:c203:0012:3456\n\tsys_image_guid:\t\t\ta088:c203:0012:3456\n"
        f"\tvendor_id:\t\t\t0x02c9\n\tvendor_part_id:\t\t\t4129\n\thw_ver:\t\t\t\t0x0\n{board}"
        f"\tphys_port_cnt:\t\t\t{ports}\n"
    )
    port = (
        "\t\tport:\t{}\n\t\t\tstate:\t\t\tPORT_ACTIVE (4)\n\t\t\tmax_mtu:\t\t4096 (5)\n"
        "\t\t\tactive_mtu:\t\t4096 (5)\n\t\t\tsm_lid:\t\t\t1\n\t\t\tport_lid:\t\t17\n"
        "\t\t\tport_lmc:\t\t0x00\n\t\t\tlink_layer:\t\tInfiniBand\n\n"
    )
    return head + "".join(port.format(number) for number in range(1, ports + 1))


FULL = "fe80:0000:0000:0000:a088:c2ff:fe12:3456"
MAPPED = "0000:0000:0000:0000:0000:ffff:0a00:0004"
#: The rows of GID tables: those of an interface with an IPv4 address, and of other drivers.
V1, V2 = f"{FULL}, RoCE v1", "fe80::a088:c2ff:fe12:3456, RoCE v2"
IPV4_V1, IPV4_V2 = f"{MAPPED}, RoCE v1", "::ffff:10.0.0.4, RoCE v2"
PAIRS = (V1, V2, IPV4_V1, IPV4_V2)


def verbose(device: str, gids: tuple[str, ...] = PAIRS) -> str:
    """Return the block of a device, as ibv_devinfo -v writes it (the limits are shortened)."""
    text = devinfo(device).rstrip("\n").replace("layer:\t\tInfiniBand", "layer:\t\tEthernet")
    port = (
        "max_msg_sz:\t\t0x40000000\n\t\t\tport_cap_flags:\t\t0x04010000\n"
        "\t\t\tmax_vl_num:\t\tinvalid value (0)\n\t\t\tbad_pkey_cntr:\t\t0x0\n"
        "\t\t\tgid_tbl_len:\t\t255\n\t\t\tinit_type_reply:\t0\n"
        "\t\t\tactive_width:\t\t4X (2)\n\t\t\tactive_speed:\t\t25.0 Gbps (32)\n"
        "\t\t\tphys_state:\t\tLINK_UP (5)"
    )
    rows = "".join(f"\n\t\t\tGID[{at:3}]:\t\t{gid}" for at, gid in enumerate(gids))
    return f"{text}\n\t\t\t{port}{rows}\n\n"


def ibstatus(device: str) -> str:
    """Return the block of a port, as ibstatus writes it."""
    return (
        f"Infiniband device '{device}' port 1 status:\n"
        "\tdefault gid:\t fe80:0000:0000:0000:a088:c203:0012:3456\n\tbase lid:\t 0x11\n"
        "\tsm lid:\t\t 0x1\n\tstate:\t\t 4: ACTIVE\n\tphys state:\t 5: LinkUp\n"
        "\trate:\t\t 400 Gb/sec (4X NDR)\n\tlink_layer:\t InfiniBand\n\n"
    )


def lspci(bus: str) -> str:
    """Return a card with the details of lspci -vv."""
    return (
        f"{bus}:00.0 Infiniband controller: Mellanox Technologies MT2910 Family [ConnectX-7]\n"
        "\tSubsystem: Mellanox Technologies Device 0041\n\tNUMA node: 0\n"
        "\t\tLnkCap:\tPort #0, Speed 32GT/s, Width x16, ASPM not supported\n"
        "\t\tLnkSta:\tSpeed 32GT/s, Width x16\n"
    )


TOPO = """\tGPU0\tGPU1\tNIC0\tNIC1\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID
GPU0\t X \tNV18\tPIX\tSYS\t0-55\t0\t\tN/A
GPU1\tNV18\t X \tSYS\tPIX\t56-111\t1\t\tN/A
NIC0\tPIX\tSYS\t X \tSYS
NIC1\tSYS\tPIX\tSYS\t X
"""
IBDEV2NETDEV = "mlx5_0 port 1 ==> ib0 (Up)\nmlx5_1 port 1 ==> ib1 (Up)\n"
RDMA_LINK = (
    "link mlx5_0/1 subnet_prefix fe80:0000:0000:0000 lid 1 sm_lid 1 lmc 0 state ACTIVE "
    "physical_state LINK_UP\nlink mlx5_1/1 state DOWN physical_state DISABLED netdev ens3f1np1\n"
)
MST = (
    "DEVICE_TYPE             MST                           PCI       RDMA     NET          NUMA\n"
    "ConnectX7(rev:0)        /dev/mst/mt4129_pciconf5      e5:00.0   mlx5_5   net-ibs5     1\n"
    "ConnectX7(rev:0)        NA                            e6:00.0   mlx5_6   net-ibs6     1\n"
)
#: A whole output, and where its last device begins.
BLOCKS = {
    "ibstat": ibstat("mlx5_0") + ibstat("mlx5_1") + ibstat("mlx5_7"),
    "ibstat of two ports": ibstat("mlx5_0", 2) + ibstat("mlx5_7", 2),
    "ibv_devinfo": devinfo("mlx5_0") + devinfo("mlx5_7"),
    "ibstatus": ibstatus("mlx5_0") + ibstatus("mlx5_7"),
}
COMPLETE = {
    **BLOCKS,
    "one device, ibstat": ibstat("mlx5_0"),
    "one device, ibv_devinfo": devinfo("mlx5_0"),
    "one device, ibstatus": ibstatus("mlx5_0"),
    "a device in software": devinfo("mlx5_0") + devinfo("rxe0", board=""),
    "one port after two": ibstat("mlx5_0", 2) + ibstat("mlx5_1"),
    "two ports after one": ibstat("mlx5_0") + ibstat("mlx5_1", 2),
    "only port 1 (-i 1)": devinfo("mlx5_0").replace("cnt:\t\t\t1", "cnt:\t\t\t2"),
    "no ports (ibstat -s)": "".join(ibstat(f"mlx5_{i}").partition("\tPort 1")[0] for i in (0, 1)),
    "a filter": "CA 'mlx5_0'\n\tCA type: MT4129\n\t\tState: Active\n\t\tRate: 400\n",
    "names (grep hca_id)": "hca_id:\tmlx5_0\nhca_id:\tmlx5_1\n",
    "lspci -vv": lspci("18") + lspci("3b"),
    "lspci": "".join(lspci(bus).partition("\tSub")[0] for bus in ("18", "3b")),
    "topo": TOPO,
    "ibdev2netdev": IBDEV2NETDEV,
    "rdma link": RDMA_LINK,
    "rdma link of a state to come": "link mlx5_0/1 state ACTIVE physical_state QUIESCENT\n",
    "mst status -v": MST,
    "ibv_devinfo -v": verbose("mlx5_0"),
    "ibv_devinfo -v of two": verbose("mlx5_0") + verbose("mlx5_1", (V1, V2)),
    "RoCE v2 alone": verbose("irdma0", (V2, IPV4_V2)),
    "RoCE v1 alone": verbose("hns_0", (V1, IPV4_V1)),
    "an address of RoCE v1 alone": verbose("x_0", (V1, V2, IPV4_V1, V1)),
    "an address of RoCE v2 alone": verbose("x_0", (V1, V2, IPV4_V2)),
    "InfiniBand's GID": verbose("mlx5_0", (FULL,)),
    "GIDs without versions": verbose("mlx5_0", (FULL, FULL, MAPPED, MAPPED)),
    "no GID": verbose("mlx5_0", ()),
    "a filter of -v": "hca_id:\tmlx5_0\n\t\t\tlink_layer:\tEthernet\n\t\t\tmax_msg_sz:\t0x40\n",
}  # fmt: skip


def cuts(text: str) -> list[str]:
    """Return what is cut in a text of one node."""
    return [cut.text for cut in read_texts([NodeText("n1.txt", "n1", text)]).cuts]


@pytest.mark.parametrize("text", COMPLETE.values(), ids=COMPLETE)
@pytest.mark.parametrize("end", ["", "\n\n", "\n$ "], ids=["as is", "blank lines", "a prompt"])
def test_a_whole_output_is_not_cut(text: str, end: str) -> None:
    """Devices of different kinds, options and filters make outputs that only look short."""
    assert cuts(text + end) == []
    assert cuts(text.rstrip("\n") + end) == []


@pytest.mark.parametrize("tool", BLOCKS)
def test_each_end_within_the_last_device_is_named(tool: str) -> None:
    """After any line of the device but its last, and within nearly any line."""
    text = BLOCKS[tool].rstrip("\n")
    begin = text.rindex("mlx5_7")
    ends = [at for at, (_, after) in enumerate(pairwise(text)) if at > begin and after == "\n"]
    for end in ends:
        assert cuts(text[: end + 1]) == [
            f"the text ends within mlx5_7 ({tool.split(maxsplit=1)[0]})"
        ]
    last_line = text.rindex("\n") + 1
    for end in range(last_line + 4, len(text)):
        assert cuts(text[:end]) == [f"the text ends within mlx5_7 ({tool.split(maxsplit=1)[0]})"]


@pytest.mark.parametrize(
    ("text", "end"),
    [
        (ibstat("mlx5_7"), "\tPort 1"),
        (devinfo("mlx5_7"), "\tvendor_id"),
        (ibstatus("mlx5_7"), "\tstate"),
    ],
    ids=["ibstat", "ibv_devinfo", "ibstatus"],
)
def test_a_single_device_is_cut_if_nobody_filtered_it(text: str, end: str) -> None:
    """Its first lines are all there, but none of its last."""
    tool = {"C": "ibstat", "h": "ibv_devinfo", "I": "ibstatus"}[text[0]]
    start = text.index("\n", text.index(end))
    lines = [at for at in range(start, len(text.rstrip())) if text[at] == "\n"]
    for at in lines[:-2]:  # without the last two keys
        assert cuts(text[:at]) == [f"the text ends within mlx5_7 ({tool})"]


def test_a_single_device_of_ibstat_may_be_cut_before_its_ports() -> None:
    """After all of its own keys, it may be the short form (-s)."""
    head = ibstat("mlx5_7").partition("\tPort 1")[0]
    assert cuts(head) == []
    assert cuts(head.partition("\tSystem")[0]) == ["the text ends within mlx5_7 (ibstat)"]


PLAIN = ("ibstat", "ibstat mlx5_7", "sudo ibstat", "/usr/sbin/ibstat mlx5_7 1")
OTHER = ("ibstat -s", "ibstat --short mlx5_7", "ibstat -ls", "ibstat | head", "timeout 9 ibstat")


@pytest.mark.parametrize("command", [*PLAIN, *OTHER])
def test_the_command_shows_that_a_device_of_ibstat_lacks_its_ports(command: str) -> None:
    """Without an option, it writes the ports of each device that has any."""
    head = ibstat("mlx5_7").partition("\tPort 1")[0]
    cut = ["the text ends within mlx5_7 (ibstat)"] if command in PLAIN else []
    assert cuts(f"root@n1:~# {command}\n{head}") == cut
    assert cuts(f"root@n1:~# {command}\n{head}root@n1:~# \n") == cut
    assert cuts(f"root@n1:~# {command}\n{head}".replace("ports: 1", "ports: 0")) == []
    assert cuts(f"root@n1:~# {command}\n{ibstat('mlx5_7')}") == []


@pytest.mark.parametrize("before", ["", verbose("mlx5_0")], ids=["alone", "after another"])
def test_ibv_devinfo_may_end_within_its_gids(before: str) -> None:
    """A row is the beginning of one, or the last one has RoCE v1 alone."""
    text = before + verbose("mlx5_7").rstrip("\n")
    sentence = ["the text ends within mlx5_7 (ibv_devinfo)"]
    first = text.rindex("GID[  0]")
    second, third, fourth = (text.index(f"GID[{at:3}]", first) for at in (1, 2, 3))
    for begin, end in ((second, third), (third, fourth), (fourth, len(text))):
        whole = text[begin:end].rstrip()
        for length in range(1, len(whole)):
            assert cuts(text[:begin] + whole[:length]) == sentence
    assert cuts(text[:fourth]) == sentence
    assert cuts(text[:second]) == []  # perhaps there is no RoCE v2
    assert cuts(text[:third]) == []  # perhaps the interface has no address
    assert cuts(text) == []


def test_a_first_gid_may_be_incomplete_too() -> None:
    """The full form without a version may be InfiniBand's; anything shorter is a beginning."""
    text = verbose("mlx5_7", (FULL,)).rstrip("\n")
    begin = text.index("GID[")
    for end in range(begin + 1, len(text)):
        assert cuts(text[:end]) == ["the text ends within mlx5_7 (ibv_devinfo)"]
    assert cuts(f"{text}, RoCE v") == ["the text ends within mlx5_7 (ibv_devinfo)"]


def test_ibv_devinfo_may_end_before_the_speed() -> None:
    """With -v, a port has it; so has nobody filtered the lines who kept those before it."""
    text = verbose("mlx5_7")
    for key in ("gid_tbl_len", "init_type", "active_width", "active_speed"):
        end = text.index(f"\n\t\t\t{key}")
        assert cuts(text[:end]) == ["the text ends within mlx5_7 (ibv_devinfo)"]
    assert cuts(text[: text.index("\n\t\t\tphys_state")]) == []  # not on all devices


def test_lines_after_the_beginning_of_a_gid_show_a_person() -> None:
    """They would not be there otherwise."""
    text = verbose("mlx5_7")
    half = text[: text.index("GID[  3]") + 14]
    assert cuts(half) != []
    assert cuts(f"{half}\n\t\t\tgid_tbl_len:\t\t255\n") == []
    assert cuts(f"{half}\n{verbose('mlx5_8')}") == []


def test_a_second_port_that_is_missing_is_a_cut() -> None:
    """Only if the first device has both: an option may choose one port."""
    first, second = ibstat("mlx5_0", 2), ibstat("mlx5_7", 2)
    half = second.partition("\tPort 2")[0]
    assert cuts(first + half) == ["the text ends within mlx5_7 (ibstat)"]
    assert cuts(first.partition("\tPort 2")[0] + half) == []


@pytest.mark.parametrize(
    ("text", "within"),
    [
        (lspci("18") + lspci("3b").partition("\t\tLnkSta")[0], "3b:00.0 (lspci)"),
        (lspci("18") + lspci("3b").partition("\tSub")[0], "3b:00.0 (lspci)"),
        ("3b:00.0 Infiniband controller [0207]: Mellanox Technologies MT29", "3b:00.0 (lspci)"),
        (IBDEV2NETDEV[:-4], "mlx5_1 (ibdev2netdev)"),
        (RDMA_LINK.partition(" netdev")[0][:-1], "mlx5_1 (rdma link)"),
        (RDMA_LINK.partition(" ens3")[0], "mlx5_1 (rdma link)"),
        (RDMA_LINK.partition("dev ens3")[0], "mlx5_1 (rdma link)"),
        (MST[:-4], "e6:00.0 (mst status)"),
        (MST[:-24], "e6:00.0 (mst status)"),
    ],
)
def test_a_line_that_ends_too_early_is_a_cut(text: str, within: str) -> None:
    """Lines of a fixed form show where they end."""
    assert cuts(text) == [f"the text ends within {within}"]


@pytest.mark.parametrize("end", ["\nsome words\n", "\n$ uname -r\n6.1.0\n"])
def test_text_after_an_incomplete_device_shows_a_person(end: str) -> None:
    """A person may have shortened an output that is not at the end."""
    text = BLOCKS["ibstat"]
    assert cuts(text[: text.rindex("\t\tRate")] + end) == []


def test_each_node_has_its_own_end() -> None:
    """In the output of many nodes, each is looked at alone."""
    complete = BLOCKS["ibstat"]
    half = complete[: complete.rindex("\t\tRate")]
    text = "".join(f"n1: {line}\n" for line in half.splitlines())
    text += "".join(f"n2: {line}\n" for line in complete.splitlines())
    read = read_texts([NodeText("pdsh.txt", "x", text)])
    assert read.cuts == (CutOutput("n1", "pdsh.txt", "the text ends within mlx5_7 (ibstat)"),)


@pytest.mark.parametrize(
    ("rows", "within"),
    [(1, "0 of 2 GPUs and 0 of 2 NICs"), (2, "1 of 2 GPUs and 0 of 2 NICs"), (4, "1 of 2 NICs")],
)
def test_a_topology_has_as_many_rows_as_columns(rows: int, within: str) -> None:
    """The header says how many GPUs and NICs there are, wherever the table stands."""
    text = "\n".join(TOPO.splitlines()[:rows])
    sentence = f"the table of nvidia-smi topo -m has rows of {within}"
    assert cuts(text) == [sentence]
    assert cuts(f"{text}\n\n{ibstat('mlx5_0')}") == [sentence]


def test_a_damaged_row_of_a_topology_is_no_missing_one() -> None:
    """Its X is in another column, so it is not read; but it is there."""
    assert cuts(TOPO.replace("GPU1\tNV18\t X ", "GPU1\t X \tNV18")) == []


SCRIPT = f"""### rdma-webhook discover: 2
### host: gpu-01
### ran: ibstat (exit 0)
{ibstat("mlx5_0")}### ran: uname -r (exit 0)
"""


def test_the_scripts_output_has_an_end() -> None:
    """Version 2 ends with a line of its own; version 1 did not."""
    sentence = "the text ends within the output of uname -r"
    assert cuts(SCRIPT) == [sentence]
    assert cuts(SCRIPT.partition("### ran: uname")[0]) == [
        "the text ends within the output of ibstat"
    ]
    without_headers = f"### rdma-webhook discover: 2\n{ibstat('mlx5_0')}"
    assert cuts(without_headers) == ["the text ends within the output of the script"]
    assert cuts(f"{SCRIPT}### end\n") == []
    assert cuts(SCRIPT.replace(": 2", ": 1")) == []
    assert cuts(f"{SCRIPT}### end\n{SCRIPT}") == [sentence]


def test_a_device_is_more_exact_than_a_command() -> None:
    """The device is named once, not the command as well."""
    text = SCRIPT[: SCRIPT.index("\t\tLMC")]
    assert cuts(text) == ["the text ends within mlx5_0 (ibstat)"]


def test_a_failed_command_may_be_cut_anywhere() -> None:
    """The script ends tools that hang; what they printed is not all."""
    half = BLOCKS["ibstat"][: BLOCKS["ibstat"].rindex("\t\tRate")]
    text = (
        f"### rdma-webhook discover: 1\n### ran: ibstat (exit {{}})\n{half}### ran: true (exit 0)\n"
    )
    assert cuts(text.format(124)) == ["the text ends within mlx5_7 (ibstat)"]
    assert cuts(text.format(0)) == []


def test_the_report_has_an_error_and_the_exit_code_1(discover: Discover) -> None:
    """A smaller fabric must not look whole."""
    text = BLOCKS["ibstat"]
    ran = discover("-", "-o", "json", stdin=text[: text.rindex("\t\tLMC")])
    (finding,) = (f for f in json.loads(ran.out)["findings"] if f["code"] == "OutputCut")
    assert (finding["level"], finding["text"]) == ("error", "the text ends within mlx5_7 (ibstat)")
    assert finding["location"]["file"] == "<stdin>"
    assert ran.code == 1
