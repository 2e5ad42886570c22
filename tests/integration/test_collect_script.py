"""The script of `discover script`, run for real by three shells.

There is no RDMA here: fake tools print given lines in the formats of the real ones, and /sys and
/proc are below a folder of the test.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import time
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.integration.programs import part
from webhook.diagnose.discover.inputs import collect_script, run_here
from webhook.diagnose.tools.observations import (
    GidObservation,
    Observation,
    PortObservation,
    SettingObservation,
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
    """A node: its shell, and what it has below a folder."""

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
    """Return a shell; bash as it is where it is /bin/sh."""
    path = part(request.param, request.param)
    return {"bash": (path, "--posix"), "busybox": (path, "sh")}.get(request.param, (path,))


@pytest.fixture
def node(tmp_path: Path, shell: tuple[str, ...]) -> Node:
    """Return a node with a card, and without any of the tools."""
    (tmp_path / "bin").mkdir()
    for name in NEEDED:
        (tmp_path / "bin" / name).symlink_to(part(name, "coreutils"))
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
    first, *others = re.split(r"^(?=### )", out, flags=re.MULTILINE)
    assert first == ""
    found = {lines[0]: lines[1:] for lines in map(str.splitlines, others)}
    assert len(found) == len(others)
    return found


def test_without_any_tool_the_files_are_shown(node: Node) -> None:
    """Files say most of it; what is not needed is left out, and what is missing is said."""
    shown = parts(node.run(node.script()))
    assert list(shown)[:2] == ["### rdma-webhook discover: 1", "### host: gpu-01"]
    # busybox has a modinfo of its own.
    lines = {line for header, part in shown.items() if "modinfo" not in header for line in part}
    expected = {
        f"/{name}:{line}"
        for name, text in FILES.items()
        for line in text.splitlines()
        if not name.startswith(("proc/sys/kernel/hostname", "proc/77", "proc/self", "proc/4321"))
        and not name.startswith(("sys/bus/pci/devices/0000:17", "sys/bus/pci/devices/0000:00"))
        and not line.startswith(("xfs", "IRQ", "0000:0000"))
    }
    modules, _ = FILES["proc/modules"].splitlines()
    expected.remove(f"/proc/modules:{modules}")
    # The RDMA device leads to its card.
    for name in ("vendor", "device"):
        expected.add(f"/sys/class/infiniband/mlx5_0/device/{name}:{FILES[f'{CARD}/{name}']}")
    limit = FILES["proc/4321/limits"]
    listed = {line for line in shown["### ran: ls -l /sys/class/infiniband (exit 0)"] if line}
    assert lines - listed == {*expected, limit, modules}
    assert shown["### ran: grep Max locked memory /proc/4321/limits (exit 0)"] == [limit]
    (absent,) = (header for header in shown if header.startswith("### note: not installed:"))
    assert {"ibstat", "rdma", "lspci", "nvidia-smi", "iproute2"} <= set(absent.split())


def test_what_is_printed_is_understood(node: Node) -> None:
    """The readers take each line, and put a device together with its card and its GIDs."""
    found: list[Observation] = []
    for capture in split_by_node(node.run(node.script())):
        if capture.command and "modinfo" not in capture.command:
            reading = read(capture.lines)
            shown = {line.number for line in capture.lines if line.text.strip()}
            assert (capture.node, shown - reading.recognised_lines) == ("gpu-01", set())
            found += reading.observations
    ports = [one for one in found if isinstance(one, PortObservation)]
    (gid,) = (one for one in found if isinstance(one, GidObservation))
    assert {one.pci for one in ports if one.device == "mlx5_0"} == {None, "0000:18:00.0"}
    assert {(one.state, one.rate_gbps) for one in ports if one.port == 1} == {("Active", 400)}
    assert (gid.gid_index, gid.netdev) == (0, "hsn0")
    settings = {one.setting: one.value for one in found if isinstance(one, SettingObservation)}
    assert settings == {
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
def test_a_machine_without_a_gpu_is_told(
    node: Node, pci_class: str, vendor: str | None, absent: bool
) -> None:
    """By its PCI functions; one that may be a GPU is enough to say nothing."""
    function = node.root / "sys/bus/pci/devices/0000:17:00.0"
    (function / "class").write_text(f"{pci_class}\n")
    if vendor is None:
        (function / "vendor").unlink()
    else:
        (function / "vendor").write_text(f"{vendor}\n")
    assert (NO_GPU in node.run(node.script()).splitlines()) is absent


def test_without_pci_functions_gpus_are_unknown(node: Node) -> None:
    """Then /sys shows none, or cannot be read."""
    for function in (node.root / "sys/bus/pci/devices").iterdir():
        (function / "class").unlink()
    assert NO_GPU not in node.run(node.script())


def test_tools_are_shown_with_their_status(node: Node) -> None:
    """A tool's output is shown whole, with what it was called with and how it ended."""
    for name, script in TOOLS.items():
        node.tool(name, script)
    shown = parts(node.run(node.script()))
    assert shown["### ran: ibstat (exit 0)"] == ["CA 'mlx5_0'", "", "\tCA type: MT4129"]
    assert shown["### ran: rdma link (exit 0)"] == ["link mlx5_0/1 state ACTIVE"]
    assert shown["### ran: rdma system show (exit 7)"] == ["no"]
    assert shown["### ran: lspci -Dnn (exit 0)"] == [
        "0000:18:00.0 Infiniband controller [0207]: Card"
    ]


def test_nothing_is_changed(node: Node) -> None:
    """The script writes no file, neither where it runs nor where it reads."""
    before = sorted(str(path) for path in node.root.rglob("*"))
    node.run(f"cd {node.root}; {node.script()}")
    assert sorted(str(path) for path in node.root.rglob("*")) == before


def test_a_tool_that_hangs_is_stopped(node: Node) -> None:
    """A tool gets a bounded time, also if it ignores a polite end; the others still run."""
    node.tool("ibstat", f"trap '' TERM; echo begun; exec {part('sleep', 'coreutils')} 60")
    node.tool("rdma", TOOLS["rdma"])
    shown = parts(node.run(node.script().replace("seconds=20", "seconds=1")))
    (stopped,) = (header for header in shown if header.startswith("### ran: ibstat (exit "))
    assert stopped not in {"### ran: ibstat (exit 0)", "### ran: ibstat (exit 1)"}
    assert shown[stopped][0] == "begun"
    assert shown["### ran: rdma link (exit 0)"] == ["link mlx5_0/1 state ACTIVE"]


def test_without_timeout_it_runs_and_says_so(node: Node) -> None:
    """Not every machine has timeout; busybox has its own."""
    if "busybox" in node.shell[0]:
        return  # its timeout is part of its shell, so it cannot be missing
    (node.root / "bin/timeout").unlink()
    shown = node.run(node.script())
    assert "### note: timeout is not installed, so a tool that hangs stops this script" in shown
    assert f"/{PORT}/state:4: ACTIVE" in shown


def test_a_machine_without_rdma_says_so(node: Node) -> None:
    """No device, or no /sys at all, is said in a sentence."""
    shutil.rmtree(node.root / "sys")
    shown = node.run(node.script())
    assert "### note: no RDMA device in /sys/class/infiniband: no such card, or" in shown
    assert "ls -l" not in shown


def test_in_a_pod_its_own_limit_counts(node: Node) -> None:
    """The DaemonSet names the node, and a container has the limit that containerd passes on."""
    shown = parts(node.run(node.script(), DISCOVER_NODE="node-7"))
    assert list(shown)[1] == "### host: node-7"
    assert shown["### ran: grep Max locked memory /proc/self/limits (exit 0)"] == [
        FILES["proc/self/limits"]
    ]
    assert not any("4321" in header for header in shown)


def test_this_machine_is_shown() -> None:
    """--run prints what the script prints here."""
    shown = parts(run_here())
    assert next(iter(shown)) == "### rdma-webhook discover: 1"
    assert list(shown)[1] == f"### host: {os.uname().nodename}"
    assert not Path("/sys/class/infiniband").is_dir() or any("infiniband" in one for one in shown)


def test_a_run_that_takes_too_long_is_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    """What was printed until then stays, and processes of the script do not."""
    script = "echo '### host: slow'; sleep 1000 & echo $!; wait"
    monkeypatch.setattr("webhook.diagnose.discover.inputs.collect_script", lambda: script)
    shown = run_here(seconds=1).splitlines()
    assert (shown[0], shown[-1]) == ("### host: slow", "### note: stopped after 1 s")
    deadline = time.monotonic() + 60
    while Path(f"/proc/{shown[1]}").exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not Path(f"/proc/{shown[1]}").exists()


def test_without_a_shell_there_is_a_note(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where sh cannot be run, the text says so, in place of an exception."""
    monkeypatch.setenv("PATH", "/nowhere")
    assert run_here() == "### note: cannot run sh: No such file or directory\n"
