"""What a shell in a container prints, and what it shows."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.unit.diagnose.why.pods import chapter_findings, explain, pod_in_cluster, status
from webhook.diagnose.why.evidence import ContainerProcesses, MemoryRights, RdmaProcess
from webhook.diagnose.why.explanation import Explanation
from webhook.diagnose.why.process_reads import PROCESS_SCRIPT, read_processes

LIMITED = MemoryRights(65532, False, 64)


@pytest.mark.parametrize(
    ("output", "rdma_processes", "problem"),
    [
        ("process 7 0 my prog\nprocess 8 12 a\nhidden 0\n", [(7, "my prog", 0), (8, "a", 12)], ""),
        ("hidden 0\n", [], ""),
        ("hidden 3\n", [], "3 of its processes belong to another user and cannot be inspected"),
        ("process 8 12 a\nhidden 3\n", [(8, "a", 12)], ""),
        ("no-ls\n", [], "the image has no ls"),
        ("exec failed: no such file\n", [], "the script printed 'exec failed: no such file'"),
        ("process x 1 a\nprocess 1 x a\nprocess 1 ² a\nprocess 1\nhidden 0", [], ""),
        (
            "process 7 0 python\r\nhidden ",
            [],
            "the script printed 'process 7 0 python\\r\\nhidden'",
        ),
    ],
)
def test_answers_of_the_script(output: str, rdma_processes: list[Any], problem: str) -> None:
    """The result has the processes with an open device, or the problem."""
    inspection = read_processes("main", output)
    assert list(map(tuple, inspection.rdma_processes)) == rdma_processes
    assert inspection.problem == problem


def test_the_script_runs() -> None:
    """A shell runs it to its end, and this process has no RDMA device open."""
    process = subprocess.run(
        ["/bin/sh", "-c", PROCESS_SCRIPT], capture_output=True, text=True, check=True
    )
    assert process.stderr == ""
    assert process.stdout.splitlines()[-1].startswith("hidden ")
    assert "process " not in process.stdout


def test_the_script_finds_who_has_a_device_open(tmp_path: Path) -> None:
    """A process is found by its open file, which here is a stand-in for a device."""
    device = tmp_path / "dev" / "infiniband" / "uverbs0"
    device.parent.mkdir(parents=True)
    with device.open("w"):
        process = subprocess.run(
            ["/bin/sh", "-c", PROCESS_SCRIPT], capture_output=True, text=True, check=True
        )
    inspection = read_processes("main", process.stdout)
    assert [(process.pid, process.registered_kib) for process in inspection.rdma_processes] == [
        (os.getpid(), 0)
    ]
    assert inspection.rdma_processes[0].name


@pytest.mark.parametrize(
    ("line", "rights"),
    [
        ("memory 0 00000000a80465fb unlimited", MemoryRights(0, True, None)),
        ("memory 65532 0000000000000000 65536", MemoryRights(65532, False, 64)),
        ("memory 0 0000000000004000 0", MemoryRights(0, True, 0)),
        ("memory 0 ffffffffffffbfff 0", MemoryRights(0, False, 0)),
        ("memory 0 00000000a80465fb", None),
        ("memory ? ? ?", None),
        ("a memory 0 0 0", None),
        ("memory 0 0 0 0", None),
    ],
)
def test_the_rights_of_a_new_process(line: str, rights: MemoryRights | None) -> None:
    """The line has the user, the effective capabilities and the limit in bytes."""
    assert read_processes("main", f"{line}\nhidden 0").rights == rights
    assert read_processes("main", f"{line}\nno-ls").rights == rights


def test_the_rights_of_this_process() -> None:
    """The script reads those of the shell that runs it."""
    command = f"ulimit -l 8; {PROCESS_SCRIPT}"
    process = subprocess.run(["/bin/sh", "-c", command], capture_output=True, text=True, check=True)
    rights = read_processes("main", process.stdout).rights
    assert rights is not None
    assert (rights.user, rights.limit_kib) == (os.geteuid(), 8)


def shown(rights: MemoryRights | None, *processes: RdmaProcess, **fields: Any) -> Explanation:
    """Explain an equipped pod whose image is assumed to run as root, with a shell in it."""
    inspections = (
        ContainerProcesses("proxy", rights=LIMITED),
        ContainerProcesses("main", processes, rights=rights),
    )
    pod = pod_in_cluster(
        fields.pop("annotations", status(assumed="RootAssumed")), limits={"rdma/a": "1"}
    )
    return explain(pod, processes=inspections, **fields)


def test_an_image_that_does_not_run_as_root() -> None:
    """The assumption of the verdict is wrong; containers that request no device do not count."""
    explanation = shown(LIMITED)
    assert (explanation.rdma, explanation.answer.code) == ("no", "CannotLockMemory")
    assert explanation.answer.level == "error"
    assert explanation.answer.text == (
        "No RDMA, although rdma.lab/status says yes: in container main, a new process runs as user "
        "65532 without IPC_LOCK in effect, and may lock only 64 KiB of memory (ulimit -l): it "
        "cannot use RDMA."
    )
    assert explanation.answer.remedy.startswith("Run the container as root")
    findings = chapter_findings(explanation, "processes")
    assert [finding.code for finding in findings[:1]] == ["CannotLockMemory"]
    in_use = shown(LIMITED, RdmaProcess(7, "python", 64))
    assert (in_use.rdma, in_use.answer.code) == ("yes", "Equipped")


@pytest.mark.parametrize(
    ("rights", "text"),
    [
        (MemoryRights(0, True, 64), "runs as root, and IPC_LOCK is in effect."),
        (MemoryRights(7, False, None), "runs as user 7, and the limit of locked memory is high."),
        (
            MemoryRights(7, False, 1 << 20),
            "runs as user 7, and the limit of locked memory is high.",
        ),
    ],
)
def test_an_image_that_may_lock_memory(rights: MemoryRights, text: str) -> None:
    """Nothing is assumed any more."""
    explanation = shown(rights)
    assert explanation.rdma == "yes"
    assert "assuming" not in explanation.answer.text
    finding = chapter_findings(explanation, "processes")[0]
    assert (finding.code, finding.level) == ("MayLockMemory", "ok")
    assert finding.text == f"In container main, a new process {text}"


def test_rights_that_settle_nothing() -> None:
    """Unknown ones, those just below what RDMA needs, and those of a pod without the assumption."""
    assert "assuming" in shown(None).answer.text
    two = pod_in_cluster(status(assumed="RootAssumed"), limits={"rdma/a": "1"})
    two["spec"]["containers"].append({**two["spec"]["containers"][0], "name": "second"})
    proven = ContainerProcesses("main", rights=MemoryRights(0, True, 0))
    assert "assuming" in explain(two, processes=(proven,)).answer.text
    both = (proven, proven._replace(container="second"))
    assert "assuming" not in explain(two, processes=both).answer.text
    assert shown(MemoryRights(7, False, (1 << 20) - 1)).rdma == "no"
    assert shown(LIMITED, annotations=status()).answer.code == "Equipped"
    assert shown(LIMITED, annotations={}).answer.code != "CannotLockMemory"
