"""The remap script, run for real by three shells.

There is no GPU here: a fake nvidia-smi prints given lines in the format of the real one. /proc,
/dev and /var/run are below a folder of the test.
"""

from __future__ import annotations

import json
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.integration.programs import require_program
from webhook.decide.mutations.nvlink import remap

#: A node's four GPUs as nvidia-smi prints them, not in PCI order; domains matter.
GPUS = (
    "00000008:01:00.0, GPU-dddd, 3, Disabled",
    "00000000:0A:00.0, GPU-bbbb, 1, Disabled",
    "00000001:0A:00.0, GPU-cccc, 2, [N/A]",
    "00000000:07:00.0, GPU-aaaa, 0, Disabled",
)
PROC = ("0000:07:00.0", "0000:0a:00.0", "0001:0a:00.0", "0008:01:00.0")
TOOLS = ("cat", "sort", "tr")
SHOW = 'printf "%s|" "$CUDA_VISIBLE_DEVICES" "$CUDA_DEVICE_ORDER" "$0" "$@"'


class Ran(NamedTuple):
    """The result of a run."""

    code: int
    out: str
    err: str


@dataclass(frozen=True)
class Node:
    """A container on a node: its shell, and the content of its file system and environment."""

    root: Path
    shell: tuple[str, ...]
    gpus: tuple[str, ...] = GPUS
    nodes: int = 4
    proc: tuple[str, ...] = PROC
    excluded: tuple[str, ...] = ()
    mounted: tuple[str, ...] = ()
    visible: str | None = "void"
    env: tuple[tuple[str, str], ...] = ()
    smi: str | None = None

    def run(self, count: int, *command: str) -> Ran:
        """Run the wrapped command the way the kubelet would."""
        process = self.start(count, *command)
        out, err = process.communicate(timeout=300)
        return Ran(process.returncode, out, err)

    def start(self, count: int, *command: str) -> subprocess.Popen[str]:
        """Lay out the files and start the wrapped command."""
        self._files()
        words = list(remap.wrapping(count))
        words[2] = remap.script(shlex.quote(str(self.root)))
        command = command or (*self.shell, "-c", SHOW, "user", "a b", "")
        return subprocess.Popen(
            [*self.shell, *words[1:], *command],
            env=self.environment(),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def environment(self) -> dict[str, str]:
        """Return the environment that the kubelet would set."""
        env = {"PATH": str(self.root / "bin"), **dict(self.env)}
        if self.visible is not None:
            env["NVIDIA_VISIBLE_DEVICES"] = self.visible
        return env

    def _files(self) -> None:
        for bus in (*self.proc, *self.excluded):
            info = self.root / "proc/driver/nvidia/gpus" / bus / "information"
            info.parent.mkdir(parents=True)
            excluded = "Yes" if bus in self.excluded else "No"
            info.write_text(f"Model: \t\t Tesla V100 SXM2\nGPU Excluded:\t {excluded}\n")
        names = [*(f"nvidia{minor}" for minor in range(self.nodes)), "nvidiactl", "nvidia-uvm"]
        _touch(self.root / "dev", names)
        _touch(self.root / "var/run/nvidia-container-devices", self.mounted)
        smi = self.root / "bin/nvidia-smi"
        if self.smi != "":
            smi.write_text(f"#!{sys.executable}\n{self.smi or self._printing()}\n")
            smi.chmod(0o755)

    def _printing(self) -> str:
        query = ["--query-gpu=pci.bus_id,uuid,index,mig.mode.current", "--format=csv,noheader"]
        return f"import sys; assert sys.argv[1:] == {query}\nprint(*{self.gpus}, sep='\\n')"


def _touch(folder: Path, names: Iterable[str]) -> None:
    folder.mkdir(parents=True)
    for name in names:
        (folder / name).touch()


@pytest.fixture(params=["dash", "bash", "busybox"])
def node(request: pytest.FixtureRequest, tmp_path: Path) -> Node:
    """Make a container with that shell, and with no other programs than the script uses."""
    name = request.param
    path = require_program(name, name)
    (tmp_path / "bin").mkdir()
    for tool in TOOLS:
        target = path if name == "busybox" else shutil.which(tool)
        assert target is not None
        (tmp_path / "bin" / tool).symlink_to(target)
    return Node(root=tmp_path, shell=(path, "sh") if name == "busybox" else (path,))


def visible_devices(ran: Ran) -> str:
    """Return the command's CUDA_VISIBLE_DEVICES; check that it got everything else as it should."""
    devices, *words = ran.out.split("|")
    assert (ran.code, words) == (0, ["PCI_BUS_ID", "user", "a b", "", ""]), ran
    assert ran.err == f"rdma-remap: CUDA_VISIBLE_DEVICES={devices}\n"
    return devices


def refusal(ran: Ran) -> str:
    """Return why the command was not run."""
    assert (ran.code, ran.out) == (1, ""), ran
    lines = ran.err.splitlines()
    assert lines[-1].startswith("rdma-remap: "), ran
    return lines[-1].removeprefix("rdma-remap: ")


def test_uuids_become_ranks_in_pci_order(node: Node) -> None:
    """Ordinals are ranks by domain:bus:device, whatever the order of either list."""
    assert visible_devices(replace(node, visible="GPU-dddd,GPU-aaaa").run(2)) == "0,3"


def test_mounted_devices_count_where_the_variable_is_a_path(node: Node) -> None:
    """With `deviceListStrategy: volume-mounts` the variable is a path, with one entry per GPU."""
    folder = "/var/run/nvidia-container-devices"
    ran = replace(node, visible=folder, mounted=("GPU-cccc", "GPU-bbbb")).run(2)
    assert visible_devices(ran) == "1,2"


@pytest.mark.parametrize("visible", ["void", "all", "none", "", None])
def test_a_masked_proc_counts_where_the_variable_names_no_gpu(
    node: Node, visible: str | None
) -> None:
    """The legacy runtime leaves only the allocated GPUs in /proc/driver/nvidia/gpus."""
    ran = replace(node, visible=visible, proc=("0001:0a:00.0", "0008:01:00.0")).run(2)
    assert visible_devices(ran) == "2,3"


def test_a_five_digit_domain_of_proc_matches(node: Node) -> None:
    """/proc pads a PCI domain to four digits, nvidia-smi to eight."""
    gpus = ("00010000:01:00.0, GPU-vmd, 1, Disabled", "00000000:01:00.0, GPU-low, 0, Disabled")
    ran = replace(node, gpus=gpus, nodes=2, proc=("10000:01:00.0",)).run(1)
    assert visible_devices(ran) == "1"


def test_all_gpus_of_the_node_need_no_source(node: Node) -> None:
    """A container that requests as many GPUs as the node has gets all of them."""
    assert visible_devices(node.run(4)) == "0,1,2,3"


def test_excluded_gpus_count_for_nothing(node: Node) -> None:
    """/proc lists a GPU that the driver excludes by configuration; nvidia-smi does not."""
    gpus = tuple(line for line in GPUS if "GPU-aaaa" not in line)
    ran = replace(node, gpus=gpus, proc=PROC[1:], excluded=PROC[:1]).run(3)
    assert visible_devices(ran) == "0,1,2"


def test_indexes_count_where_a_masked_proc_confirms_them(node: Node) -> None:
    """With `deviceIDStrategy: index` the variable has nvidia-smi's indexes."""
    ran = replace(node, visible="1,3", proc=("0000:0a:00.0", "0008:01:00.0")).run(2)
    assert visible_devices(ran) == "1,3"


def test_indexes_of_all_gpus_are_all_gpus(node: Node) -> None:
    """If the container has every GPU of the node, its indexes can only name all of them."""
    assert visible_devices(replace(node, visible="3,2,1,0").run(4)) == "0,1,2,3"


def test_unconfirmed_indexes_are_refused(node: Node) -> None:
    """An image may have `ENV NVIDIA_VISIBLE_DEVICES=0`, whatever GPUs are allocated."""
    assert refusal(replace(node, visible="0").run(1)) == (
        "NVIDIA_VISIBLE_DEVICES contains indexes (0), which no other source confirms"
    )


def test_sources_that_disagree_are_refused(node: Node) -> None:
    """If the variable names other GPUs than the masked /proc shows, the command is not run."""
    assert refusal(replace(node, visible="GPU-aaaa", proc=("0000:0a:00.0",)).run(1)) == (
        "NVIDIA_VISIBLE_DEVICES names GPU-aaaa, but /proc/driver/nvidia/gpus shows other GPUs"
    )


@pytest.mark.parametrize("visible", ["void", "all", "none", "", None])
def test_an_unknown_allocation_is_refused(node: Node, visible: str | None) -> None:
    """Under CDI the variable is `void` and /proc unmasked: taking all GPUs would be wrong."""
    assert refusal(replace(node, visible=visible).run(2)) == (
        "cannot determine which 2 of the 4 GPU(s) of this node belong to this container"
    )


def test_an_unmasked_proc_does_not_count_even_with_few_device_nodes(node: Node) -> None:
    """Without privileges, /dev has only the allocated GPUs, and nvidia-smi sees no others."""
    assert visible_devices(replace(node, nodes=2, gpus=GPUS[:2]).run(2)) == "0,1"


@pytest.mark.parametrize(("visible", "names"), [("GPU-aaaa", 1), ("GPU-aaaa,GPU-bbbb,GPU-cccc", 3)])
def test_another_number_of_gpus_is_refused(node: Node, visible: str, names: int) -> None:
    """The webhook writes how many GPUs the container requests; with other numbers nothing runs."""
    assert refusal(replace(node, visible=visible).run(2)) == (
        f"NVIDIA_VISIBLE_DEVICES names {names} GPU(s) ({visible}), but the container requests 2"
    )


@pytest.mark.parametrize(
    ("visible", "matches"),
    [
        ("GPU-aaaa,GPU-aaaa", 1),
        ("GPU-aaaa,GPU-eeee", 1),
        ("GPU-aaaa,GPU-bbb", 1),
        ("MIG-aaaa,GPU-bbbb", 1),
        ("GPU-aaaa,*", 1),
        ("nvidia.com/gpu=0,nvidia.com/gpu=1", 0),
    ],
)
def test_names_of_fewer_gpus_than_requested_are_refused(
    node: Node, visible: str, matches: int
) -> None:
    """CUDA would silently cut the list at an invalid entry."""
    assert refusal(replace(node, visible=visible).run(2)) == (
        f"NVIDIA_VISIBLE_DEVICES names {visible}, but this matches {matches} GPU(s) of this node, "
        "not 2"
    )


def test_another_number_of_mounted_devices_is_refused(node: Node) -> None:
    """The same holds for the volume-mounts strategy."""
    assert refusal(replace(node, mounted=("GPU-aaaa",)).run(2)) == (
        "/var/run/nvidia-container-devices names 1 GPU(s) (GPU-aaaa), but the container requests 2"
    )


def test_another_number_of_gpus_in_a_masked_proc_is_refused(node: Node) -> None:
    """The same holds for /proc."""
    assert refusal(replace(node, proc=PROC[:3]).run(2)) == (
        "/proc/driver/nvidia/gpus names 3 GPU(s) (00000000:07:00.0,00000000:0a:00.0,"
        "00000001:0a:00.0), but the container requests 2"
    )


def test_too_few_gpus_are_refused(node: Node) -> None:
    """If nvidia-smi sees fewer GPUs than were requested, it does not see the whole node."""
    assert refusal(replace(node, gpus=GPUS[:1]).run(2)) == (
        "the container requests 2 GPU(s), but nvidia-smi lists 1"
    )


def test_a_gpu_in_mig_mode_is_refused(node: Node) -> None:
    """MIG on any GPU of the node renumbers what CUDA enumerates."""
    gpus = (GPUS[0], "00000000:0A:00.0, GPU-bbbb, 1, Enabled", *GPUS[2:])
    assert refusal(replace(node, gpus=gpus, visible="GPU-aaaa").run(1)) == (
        "a GPU of this node is in MIG mode: 00000000:0a:00.0,GPU-bbbb,1,enabled"
    )


def test_an_image_without_nvidia_smi_is_refused(node: Node) -> None:
    """Only nvidia-smi can list all GPUs."""
    ran = replace(node, smi="").run(4)
    assert refusal(ran) == "no nvidia-smi in this container"


@pytest.mark.parametrize("code", [1, 9, 255])
def test_an_nvidia_smi_that_fails_is_refused(node: Node, code: int) -> None:
    """If nvidia-smi fails, nothing is run, even if it printed GPUs first; its message is shown."""
    words = f"{GPUS[0]}\nUnable to determine the device handle"
    smi = f"print({words!r})\nraise SystemExit({code})"
    ran = replace(node, smi=smi, visible="GPU-dddd").run(1)
    assert (ran.code, ran.out) == (1, "")
    assert ran.err == f"rdma-remap: nvidia-smi failed: {words}\n"


@pytest.mark.parametrize(
    ("line", "compact"),
    [
        ("infoROM is corrupted", "infoROMiscorrupted"),
        ("00000000:0E:00.0, [Unknown Error], 4, *", "00000000:0e:00.0,[Unknownerror],4,*"),
        ("0000:0E:00.0, GPU-eeee, 4, Disabled", "0000:0e:00.0,GPU-eeee,4,disabled"),
    ],
)
def test_a_line_that_is_no_gpu_is_refused(node: Node, line: str, compact: str) -> None:
    """nvidia-smi prints some errors in place of a value, and still exits with 0."""
    ran = replace(node, gpus=(*GPUS, line), visible="GPU-aaaa").run(1)
    assert refusal(ran) == f"nvidia-smi printed a line that describes no GPU: {compact}"


def test_an_nvidia_smi_that_prints_nothing_is_refused(node: Node) -> None:
    """An empty list has too few GPUs."""
    assert refusal(replace(node, smi="pass").run(1)) == (
        "the container requests 1 GPU(s), but nvidia-smi lists 0"
    )


@pytest.mark.parametrize("value", ["0", "", "GPU-aaaa"])
def test_a_cuda_visible_devices_of_the_image_is_refused(node: Node, value: str) -> None:
    """A CUDA_VISIBLE_DEVICES that is already set could contradict the script's."""
    ran = replace(node, env=(("CUDA_VISIBLE_DEVICES", value),)).run(4)
    assert refusal(ran) == "CUDA_VISIBLE_DEVICES is already set"


def test_the_command_gets_its_environment_as_it_was(node: Node) -> None:
    """Only the two variables are new, even if the environment has names that the script uses."""
    env = {"count": "c", "names": "n", "gpus": "g", "LC_ALL": "C.UTF-8", "entry": "e", "PWD": "/"}
    mine = replace(node, env=tuple(env.items()))
    show = "import json, os; print(json.dumps(dict(os.environ)))"
    actual = json.loads(mine.run(4, sys.executable, "-c", show).out)
    expected = mine.environment() | {
        "CUDA_DEVICE_ORDER": "PCI_BUS_ID",
        "CUDA_VISIBLE_DEVICES": "0,1,2,3",
    }
    for name in ("PWD", "SHLVL", "_"):  # a shell sets some of these by itself
        actual.pop(name, None)
        expected.pop(name, None)
    assert actual == expected


def test_the_command_takes_the_place_of_the_shell(node: Node) -> None:
    """`exec` keeps the process id, so that signals and the exit code are the command's own."""
    process = node.start(4, sys.executable, "-c", "import os; print(os.getpid()); exit(42)")
    out, _ = process.communicate(timeout=300)
    assert (int(out), process.returncode) == (process.pid, 42)
