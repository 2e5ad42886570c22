"""What a shell in a container prints, and what it shows."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.builders import gpu
from tests.unit.diagnose.why.pods import chapter_findings, explain, pod_in_cluster, status
from tests.unit.diagnose.why.test_comparison import KNOWN_CONFIGURATION, equipped, explain_with
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


def test_the_network_interfaces() -> None:
    """Those of the container's network namespace; none where /sys is not mounted."""
    process = subprocess.run(
        ["/bin/sh", "-c", PROCESS_SCRIPT], capture_output=True, text=True, check=True
    )
    assert "lo" in read_processes("main", process.stdout).interfaces
    inspection = read_processes("main", "interface *\ninterface eth0\ninterface a b\nno-ls")
    assert inspection.interfaces == ("eth0",)


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
    assert "assuming" not in in_use.answer.text


def test_root_without_the_capability() -> None:
    """It is the capability that is missing, not root."""
    answer = shown(MemoryRights(0, False, 64)).answer
    assert "a new process runs as root without IPC_LOCK in effect" in answer.text
    assert answer.remedy == "Add IPC_LOCK to securityContext.capabilities.add of the container."


def test_root_in_a_user_namespace() -> None:
    """Its capability counts for nothing outside; a high limit helps there, too."""
    pod = pod_in_cluster(
        status(assumed="RootAssumed"), limits={"rdma/a": "1"}, spec={"hostUsers": False}
    )
    pod["spec"]["containers"] = pod_in_cluster(limits={"rdma/a": "1"})["spec"]["containers"]
    limited = ContainerProcesses("main", rights=MemoryRights(0, True, 64))
    answer = explain(pod, processes=(limited,)).answer
    assert answer.code == "CannotLockMemory"
    assert "as root of a user namespace (hostUsers: false) without IPC_LOCK in effect" in (
        answer.text
    )
    assert answer.remedy.startswith("Run the container as root (runAsUser: 0,")
    assert "remove hostUsers: false if it is set" in answer.remedy
    unlimited = ContainerProcesses("main", rights=MemoryRights(0, True, None))
    assert explain(pod, processes=(unlimited,)).rdma == "yes"


def test_the_containers_that_count() -> None:
    """They are those of the verdict, whatever others request: each of them, and no other."""
    sidecar = {"name": "proxy", "resources": {"limits": {"smarter-devices/fuse": "1"}}}
    annotations = {"rdma.lab/containers": "a,b", "rdma.lab/fabric": "v100-ib"}
    pod = equipped(
        gpu("a"), {"name": "b", "image": "x"}, sidecar, gpu("c"), annotations=annotations
    )
    limited = [ContainerProcesses(name, rights=LIMITED) for name in ("proxy", "c")]
    able = [ContainerProcesses(name, rights=MemoryRights(0, True, 0)) for name in ("a", "b")]
    for configuration in (KNOWN_CONFIGURATION, None):
        explanation = explain_with(pod, configuration, processes=(*limited, *able))
        assert (explanation.rdma, explanation.answer.code) == ("yes", "Equipped")
        assert "assuming" not in explanation.answer.text
        some = explain_with(pod, configuration, processes=(*limited, able[0]))
        assert "assuming that the image runs as root" in some.answer.text
        unable = ContainerProcesses("b", rights=LIMITED)
        answer = explain_with(pod, configuration, processes=(able[0], unable)).answer
        assert answer.code == "CannotLockMemory"
        assert "in container b, a new process runs as user 65532" in answer.text


def test_the_containers_that_count_without_a_verdict() -> None:
    """They are those with a GPU or an RDMA resource."""
    fuse, device, of_gpu = (
        {"name": resource, "resources": {"limits": {resource: "1"}}}
        for resource in ("smarter-devices/fuse", "rdma/a", "nvidia.com/v100")
    )
    pod = pod_in_cluster({}, spec={"containers": [fuse, device, of_gpu]})
    names = [container["name"] for container in pod["spec"]["containers"]]
    shells = [ContainerProcesses(name, rights=LIMITED) for name in names]
    findings = chapter_findings(explain(pod, processes=shells), "processes")
    rights = [finding.text for finding in findings if finding.code == "CannotLockMemory"]
    assert [text.split(",")[0] for text in rights] == [
        "In container rdma/a",
        "In container nvidia.com/v100",
    ]


@pytest.mark.parametrize(
    ("rights", "text"),
    [
        (MemoryRights(0, True, 64), "runs as root, and IPC_LOCK is in effect."),
        (MemoryRights(7, False, None), "runs as user 7, and the limit on locked memory is high."),
        (
            MemoryRights(7, False, 1 << 20),
            "runs as user 7, and the limit on locked memory is high.",
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
    not_called = shown(LIMITED, annotations={})
    assert (not_called.rdma, not_called.answer.code) == ("unsure", "NotOptedIn")
    assert not_called.answer.text.startswith(
        "RDMA is not certain: the webhook was not called, but the pod requests rdma/a itself."
    )
