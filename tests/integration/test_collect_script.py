"""The script of `discover script`, run for real by three shells.

There is no RDMA here: fake tools print given lines in the formats of the real ones. /sys and /proc
are below a folder of the test.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.integration.programs import require_program
from tests.waiting import until
from webhook.diagnose.discover.inputs import collect_script, run_here
from webhook.diagnose.tools.observations import (
    GidObservation,
    InterfaceObservation,
    Observation,
    PortObservation,
    PropertyObservation,
)
from webhook.diagnose.tools.readers import read
from webhook.diagnose.tools.transcripts import split_by_node

#: The programs that the script needs.
NEEDED = ("cat", "grep", "id", "ls", "timeout", "uname")
PORT = "sys/class/infiniband/mlx5_0/ports/1"
CARD = "sys/bus/pci/devices/0000:18:00.0"
#: Where the card and its RDMA device really are, as links show.
FUNCTION = "sys/devices/pci0000:15/0000:15:01.0/0000:18:00.0"
LINKS = {
    CARD: f"../../../{FUNCTION.removeprefix('sys/')}",
    "sys/class/infiniband/mlx5_0": f"../../{FUNCTION.removeprefix('sys/')}/infiniband/mlx5_0",
    f"{FUNCTION}/infiniband/mlx5_0/device": "../../../0000:18:00.0",
}
FILES = {
    "proc/sys/kernel/hostname": "gpu-01",
    "proc/sys/kernel/osrelease": "5.15.0-134-generic",
    "proc/driver/nvidia/gpus/0000:17:00.0/information": "Model: \t\t NVIDIA H100 80GB HBM3\n"
    "IRQ:   \t\t 408\nGPU UUID: \t GPU-2d9e0f7c-6f13-4b1f-9f0c-9f5d2f2a7d10",
    "proc/modules": "nvidia 56717312 1 nvidia_uvm, Live 0x0000000000000000 (POE)\n"
    "xfs 1000000 1 - Live 0x0000000000000000",
    "proc/4321/comm": "containerd",
    "proc/4321/limits": "Max locked memory         8388608     8388608     bytes",
    "proc/77/comm": "bash",
    "proc/77/limits": "Max locked memory         65536     65536     bytes",
    "proc/self/limits": "Max locked memory         unlimited   unlimited   bytes",
    "sys/class/dmi/id/product_name": "DGXH100",
    "sys/class/dmi/id/sys_vendor": "NVIDIA",
    "sys/module/ib_core/parameters/netns_mode": "Y",
    f"{CARD}/class": "0x020700",
    f"{CARD}/vendor": "0x15b3",
    f"{CARD}/device": "0x1021",
    f"{CARD}/current_link_speed": "32.0 GT/s PCIe",
    f"{CARD}/current_link_width": "16",
    f"{CARD}/net/hsn0/mtu": "9000",
    "sys/bus/pci/devices/0000:17:00.0/class": "0x030200",
    "sys/bus/pci/devices/0000:17:00.0/vendor": "0x10de",
    "sys/bus/pci/devices/0000:00:02.0/class": "0x060400",
    "sys/bus/pci/devices/0000:00:02.0/vendor": "0x8086",
    "sys/class/infiniband/mlx5_0/fw_ver": "28.39.1002",
    f"{PORT}/state": "4: ACTIVE",
    f"{PORT}/rate": "400 Gb/sec (4X NDR)",
    f"{PORT}/link_layer": "InfiniBand",
    f"{PORT}/counters/symbol_error": "0",
    f"{PORT}/gids/0": "fe80:0000:0000:0000:a088:c203:00ab:cdef",
    f"{PORT}/lid": "0x1d",
    f"{PORT}/gids/1": "0000:0000:0000:0000:0000:0000:0000:0000",
    f"{PORT}/gid_attrs/types/0": "IB/RoCE v1",
    f"{PORT}/gid_attrs/ndevs/0": "hsn0",
}
TOOLS = {
    "ibstat": "echo \"CA 'mlx5_0'\"; echo; printf '\\tCA type: MT4129\\n'",
    "rdma": 'case "$*" in link) echo "link mlx5_0/1 state ACTIVE";; *) echo no >&2; exit 7;; esac',
    "lspci": "cat; [ \"$*\" = -Dnn ] && echo '0000:18:00.0 Infiniband controller [0207]: Card'",
}


class Node(NamedTuple):
    """A node: its shell, and a folder with its files."""

    root: Path
    shell: tuple[str, ...]

    def run(self, text: str, **env: str) -> str:
        """Run the script; nothing may be written to the standard error."""
        bin_folder = self.root / "bin"
        ran = subprocess.run(
            [*self.shell, "-c", text],
            env={"PATH": str(bin_folder), **env},
            capture_output=True,
            text=True,
            input="what a tool must not read",
            timeout=120,
            check=True,
        )
        assert ran.stderr == ""
        return ran.stdout.replace(f"{self.root}/", "/")

    def script(self) -> str:
        """Return the script with the folders of the test, and without other programs."""
        text = re.sub(r"(?<!\w)/(?=(?:sys|proc)/)", f"{self.root}/", collect_script())
        assert text.count("\nPATH=$PATH:") == 1
        return re.sub(r"\nPATH=\S+", "\nPATH=$PATH", text)

    def tool(self, name: str, script: str) -> None:
        """Add a fake tool."""
        path = self.root / "bin" / name
        path.write_text(f"#!{shutil.which('dash')}\n{script}\n")
        path.chmod(0o755)


@pytest.fixture(params=["dash", "bash", "busybox"])
def shell(request: pytest.FixtureRequest) -> tuple[str, ...]:
    """Return a shell; bash in POSIX mode, as where it is /bin/sh."""
    path = require_program(request.param, request.param)
    return {"bash": (path, "--posix"), "busybox": (path, "sh")}.get(request.param, (path,))


@pytest.fixture
def node(tmp_path: Path, shell: tuple[str, ...]) -> Node:
    """Return a node with a card, and without any of the tools."""
    (tmp_path / "bin").mkdir()
    for name in NEEDED:
        (tmp_path / "bin" / name).symlink_to(require_program(name, "coreutils"))
    for name, target in LINKS.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).symlink_to(target)
        if not name.startswith(FUNCTION):
            ((tmp_path / name).parent / target).mkdir(parents=True, exist_ok=True)
    for name, text in FILES.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{text}\n")
    return Node(tmp_path, shell)


def parts(out: str) -> dict[str, list[str]]:
    """Return the lines below each header."""
    first, *texts = re.split(r"^(?=### )", out, flags=re.MULTILINE)
    assert first == ""
    sections = {lines[0]: lines[1:] for lines in map(str.splitlines, texts)}
    assert len(sections) == len(texts)
    return sections


def test_without_any_tool_the_files_are_shown(node: Node) -> None:
    """The files show most of it; unneeded lines are left out, and missing tools are listed."""
    sections = parts(node.run(node.script()))
    assert list(sections)[:2] == ["### rdma-webhook discover: 2", "### host: gpu-01"]
    # busybox has its own modinfo.
    lines = {line for header, part in sections.items() if "modinfo" not in header for line in part}
    expected = {
        f"/{name}:{line}"
        for name, text in FILES.items()
        for line in text.splitlines()
        if not name.startswith(("proc/sys/kernel/hostname", "proc/77", "proc/self", "proc/4321"))
        and not name.startswith("sys/bus/pci/devices/0000:00")
        and not line.startswith(("xfs", "IRQ", "0000:0000"))
    }
    modules, _ = FILES["proc/modules"].splitlines()
    expected.remove(f"/proc/modules:{modules}")
    # The RDMA device leads to its card.
    expected.remove(f"/{CARD}/net/hsn0/mtu:9000")
    for name in ("vendor", "device", "net/hsn0/mtu"):
        expected.add(f"/sys/class/infiniband/mlx5_0/device/{name}:{FILES[f'{CARD}/{name}']}")
    limit = FILES["proc/4321/limits"]
    listed = {line for line in sections["### ran: ls -l /sys/class/infiniband (exit 0)"] if line}
    assert lines - listed == {*expected, limit, modules}
    assert sections["### ran: grep Max locked memory /proc/4321/limits (exit 0)"] == [limit]
    (absent,) = (header for header in sections if header.startswith("### note: not installed:"))
    assert {"ibstat", "rdma", "lspci", "nvidia-smi", "iproute2"} <= set(absent.split())


def test_readers_understand_the_output(node: Node) -> None:
    """The readers recognize each line, and join a device with its card and its GIDs."""
    observations: list[Observation] = []
    for output in split_by_node(node.run(node.script())):
        if output.command and "modinfo" not in output.command:
            reading = read(output.lines)
            numbers = {line.number for line in output.lines if line.text.strip()}
            assert (output.node, numbers - reading.recognized_lines) == ("gpu-01", set())
            observations += reading.observations
    ports = [
        observation for observation in observations if isinstance(observation, PortObservation)
    ]
    (gid,) = (
        observation for observation in observations if isinstance(observation, GidObservation)
    )
    assert {port.pci for port in ports if port.device == "mlx5_0"} == {None, "0000:18:00.0"}
    assert {(port.state, port.rate_gbps) for port in ports if port.port == 1} == {("Active", 400)}
    assert (gid.gid_index, gid.netdev) == (0, "hsn0")
    (interface,) = (
        observation for observation in observations if isinstance(observation, InterfaceObservation)
    )
    assert (interface.netdev, interface.mtu) == ("hsn0", 9000)
    properties = {
        observation.name: observation.value
        for observation in observations
        if isinstance(observation, PropertyObservation)
    }
    assert properties == {
        "kernel": "5.15.0-134-generic",
        "memlock": "8388608",
        "netns": "shared",
        "peermem": "no",
        "product": "DGXH100",
        "vendor": "NVIDIA",
    }


NO_GPU = "/sys/bus/pci/devices:no GPU"


@pytest.mark.parametrize(
    ("pci_class", "vendor", "absent"),
    [
        pytest.param("0x030200", "0x10de", False, id="3D controller"),
        pytest.param("0x030200", "0x1234", False, id="3D controller of any vendor"),
        pytest.param("0x120000", "0x1002", False, id="accelerator"),
        pytest.param("0x030000", "0x10de", False, id="NVIDIA display"),
        pytest.param("0x038000", "0x1002", False, id="AMD display"),
        pytest.param("0x030000", None, False, id="display of an unknown vendor"),
        pytest.param("0x030000", "0x1a03", True, id="display of a BMC"),
        pytest.param("0x040300", "0x10de", True, id="NVIDIA audio"),
        pytest.param("0x020000", None, True, id="network card of an unknown vendor"),
    ],
)
def test_a_node_without_a_gpu_is_noted(
    node: Node, pci_class: str, vendor: str | None, absent: bool
) -> None:
    """The PCI functions decide; there is no note if one may be a GPU."""
    function = node.root / "sys/bus/pci/devices/0000:17:00.0"
    (function / "class").write_text(f"{pci_class}\n")
    if vendor is None:
        (function / "vendor").unlink()
    else:
        (function / "vendor").write_text(f"{vendor}\n")
    assert (NO_GPU in node.run(node.script()).splitlines()) is absent


def test_without_pci_functions_gpus_are_unknown(node: Node) -> None:
    """/sys shows no functions, or cannot be read."""
    for function in (node.root / "sys/bus/pci/devices").iterdir():
        (function / "class").unlink()
    assert NO_GPU not in node.run(node.script())


def test_tools_are_shown_with_their_status(node: Node) -> None:
    """A tool's whole output is shown, with its arguments and its exit code."""
    for name, script in TOOLS.items():
        node.tool(name, script)
    sections = parts(node.run(node.script()))
    assert sections["### ran: ibstat (exit 0)"] == ["CA 'mlx5_0'", "", "\tCA type: MT4129"]
    assert sections["### ran: rdma link (exit 0)"] == ["link mlx5_0/1 state ACTIVE"]
    assert sections["### ran: rdma system show (exit 7)"] == ["no"]
    assert sections["### ran: lspci -Dnn (exit 0)"] == [
        "0000:18:00.0 Infiniband controller [0207]: Card"
    ]


def test_nothing_is_changed(node: Node) -> None:
    """The script writes no file, neither where it runs nor where it reads."""
    before = sorted(str(path) for path in node.root.rglob("*"))
    node.run(f"cd {node.root}; {node.script()}")
    assert sorted(str(path) for path in node.root.rglob("*")) == before


def test_a_tool_that_hangs_is_stopped(node: Node) -> None:
    """A tool gets a bounded time, even if it ignores SIGTERM; the others still run."""
    node.tool(
        "ibstat", f"trap '' TERM; echo begun; exec {require_program('sleep', 'coreutils')} 60"
    )
    node.tool("rdma", TOOLS["rdma"])
    sections = parts(node.run(node.script().replace("seconds=20", "seconds=5")))
    (stopped,) = (header for header in sections if header.startswith("### ran: ibstat (exit "))
    assert stopped not in {"### ran: ibstat (exit 0)", "### ran: ibstat (exit 1)"}
    assert sections[stopped][0] == "begun"
    assert sections["### ran: rdma link (exit 0)"] == ["link mlx5_0/1 state ACTIVE"]


def test_without_timeout_it_runs_and_notes_that(node: Node) -> None:
    """Not every node has timeout; busybox has its own."""
    if "busybox" in node.shell[0]:
        return  # its timeout is part of its shell, so it cannot be missing
    (node.root / "bin/timeout").unlink()
    out = node.run(node.script())
    assert "### note: timeout is not installed, so a tool that hangs makes this script hang" in out
    assert f"/{PORT}/state:4: ACTIVE" in out


def test_a_node_without_rdma_is_noted(node: Node) -> None:
    """A note explains that there is no device, or no /sys at all."""
    shutil.rmtree(node.root / "sys")
    out = node.run(node.script())
    assert "### note: no RDMA device in /sys/class/infiniband: no such card, or" in out
    assert "ls -l" not in out


def test_in_a_pod_its_own_limit_counts(node: Node) -> None:
    """The DaemonSet names the node, and a container has the limit that containerd passes on."""
    sections = parts(node.run(node.script(), DISCOVER_NODE="node-7"))
    assert list(sections)[1] == "### host: node-7"
    assert sections["### ran: grep Max locked memory /proc/self/limits (exit 0)"] == [
        FILES["proc/self/limits"]
    ]
    assert not any("4321" in header for header in sections)


def test_this_node_is_shown() -> None:
    """--run prints what the script prints here."""
    sections = parts(run_here())
    assert next(iter(sections)) == "### rdma-webhook discover: 2"
    assert list(sections)[1] == f"### host: {os.uname().nodename}"
    assert not Path("/sys/class/infiniband").is_dir() or any(
        "infiniband" in header for header in sections
    )


def test_a_run_that_takes_too_long_is_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    """The output until then is kept, and the script's processes are ended."""
    script = "echo '### host: slow'; sleep 1000 & echo $!; wait"
    monkeypatch.setattr("webhook.diagnose.discover.inputs.collect_script", lambda: script)
    lines = run_here(seconds=5).splitlines()
    assert (lines[0], lines[-1]) == ("### host: slow", "### note: stopped after 5 s")
    until(lambda: not Path(f"/proc/{lines[1]}").exists())


def test_without_a_shell_there_is_a_note(monkeypatch: pytest.MonkeyPatch) -> None:
    """If sh cannot run, the text has a note, and no exception is raised."""
    monkeypatch.setenv("PATH", "/nowhere")
    assert run_here() == "### note: cannot run sh: No such file or directory\n"
