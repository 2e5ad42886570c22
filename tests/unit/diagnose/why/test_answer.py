"""The answer, and the evidence from the running pod."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.diagnose.why.pods import (
    ASKED,
    OWNED,
    chapter_findings,
    codes,
    explain,
    job,
    namespace,
    pod_in_cluster,
    pod_without_call,
    status,
)
from tests.unit.diagnose.why.test_pod_status import ended, of_main
from webhook.diagnose.tools.known_lines import TRANSPORTS
from webhook.diagnose.tools.logs import read_log
from webhook.diagnose.why.evidence import ContainerLog, ContainerProcesses, RdmaProcess
from webhook.diagnose.why.reasons import REASONS
from webhook.model.finding import Finding, Level

RDMA, SOCKETS = TRANSPORTS[0].example, TRANSPORTS[1].example

NO_MEMORY = "Couldn't allocate MR"


def log(*lines: str, previous: bool = False) -> ContainerLog:
    """Read the log of the container."""
    return ContainerLog("main", read_log("\n".join(lines)), previous)


HOLDS = ContainerProcesses("main", (RdmaProcess(7, "python", 2 << 20), RdmaProcess(8, "x", 0)))
OPEN = ContainerProcesses("main", (RdmaProcess(7, "python", 0),))
IDLE = ContainerProcesses("main")


@pytest.mark.parametrize(
    ("rdma", "because", "level", "text"),
    [
        (
            "yes",
            "Equipped",
            "ok",
            (
                "The pod is equipped for RDMA over v100-ib: device, memory, network and "
                "environment are right for RDMA."
            ),
        ),
        (
            "no",
            "FabricAmbiguous",
            "error",
            ("No RDMA: the pod matches several fabrics; set rdma.lab/fabric."),
        ),
        (
            "unsure",
            "MemlockUnknown",
            "unsure",
            (
                "RDMA over v100-ib is not certain: a container lacks IPC_LOCK, or IPC_LOCK "
                "has no effect in it; whether the nodes raise the memlock limit is unknown."
            ),
        ),
        (
            "none",
            "Launcher",
            "ok",
            (
                "The pod itself needs no RDMA: the pod only starts ranks in other pods; see the "
                "verdicts of those pods."
            ),
        ),
    ],
)
def test_the_status_answers(rdma: str, because: str, level: Level, text: str) -> None:
    """The answer is the verdict of admission, with its reason and its remedy."""
    explanation = explain(pod_in_cluster(status(rdma, because)))
    assert explanation.rdma == rdma
    remedy = REASONS[because][0].reason.remedy
    assert explanation.answer == Finding(level, because, text, remedy)
    assert explanation.well == (rdma in ("yes", "none"))


def test_the_assumption_is_in_the_answer() -> None:
    """As in the preview; the chapter has how to check it."""
    explanation = explain(pod_in_cluster(status(assumed="RootAssumed")))
    assert explanation.answer.text == (
        "The pod is equipped for RDMA over v100-ib: device, memory, network and environment are "
        "right for RDMA, assuming that the image runs as root."
    )
    (finding,) = chapter_findings(explanation, "applied")[1:]
    assert (finding.level, finding.code) == ("info", "RootAssumed")
    assert "kubectl exec POD -c CONTAINER -- id -u" in finding.text


def test_a_status_of_another_version() -> None:
    """Its verdict counts, although the code is unknown."""
    explanation = explain(pod_in_cluster(status("no", "Sorcery")))
    assert explanation.rdma == "no"
    assert explanation.answer.text == (
        "No RDMA: this version of rdma-webhook does not know the reason (Sorcery)."
    )


def test_a_pod_that_was_not_seen() -> None:
    """The answer is no, with the reason why the webhook was not called."""
    explanation = explain(pod_without_call(), namespace=namespace({}))
    assert (explanation.rdma, explanation.answer.code) == ("no", "NamespaceNotLabeled")
    assert explanation.answer.text == (
        "No RDMA, since the webhook was not called: namespace lab lacks the label "
        'rdma.lab/enable: "true".'
    )
    assert "kubectl label" in explanation.answer.remedy


def test_a_pod_that_equips_itself() -> None:
    """A pod that requests an RDMA resource itself may have RDMA without the webhook."""
    explanation = explain(pod_in_cluster({}, limits={"rdma/rdma_v100": "1"}))
    assert (explanation.rdma, explanation.answer.level) == ("unsure", "unsure")
    assert "the webhook was not called, but the pod requests rdma/rdma_v100 itself" in (
        explanation.answer.text
    )
    unreadable = explain(
        pod_in_cluster({**ASKED, "rdma.lab/status": "x"}, limits={"rdma/rdma_v100": "1"})
    )
    assert "it is not known whether the webhook was called, but" in unreadable.answer.text


def test_an_unreadable_status() -> None:
    """It is not certain what the webhook changed."""
    explanation = explain(pod_in_cluster({**ASKED, "rdma.lab/status": "x"}))
    assert (explanation.rdma, explanation.answer.code) == ("unsure", "StatusUnreadable")


def test_what_keeps_a_pod_from_running() -> None:
    """An equipped pod that does not run is not well."""
    stuck = pod_in_cluster(
        containerStatuses=[{"name": "main", "state": {"waiting": {"reason": "ErrImagePull"}}}]
    )
    explanation = explain(stuck)
    assert (explanation.rdma, explanation.well) == ("yes", False)


@pytest.mark.parametrize(
    ("verdict", "known", "rdma", "code"),
    [
        (("unsure", "MemlockUnknown"), {"logs": (log(RDMA),)}, "yes", "RdmaInUse"),
        (("yes", "Equipped"), {"logs": (log(SOCKETS),)}, "no", "SocketsInUse"),
        (("yes", "Equipped"), {"logs": (log(RDMA, SOCKETS),)}, "unsure", "MixedTransports"),
        (("yes", "Equipped"), {"logs": (log(RDMA),)}, "yes", "Equipped"),
        (("yes", "Equipped"), {"logs": (log(SOCKETS, previous=True),)}, "yes", "Equipped"),
        (("yes", "Equipped"), {"logs": (log(),)}, "yes", "Equipped"),
        (("no", "NonRoot"), {"processes": (HOLDS,)}, "yes", "MemoryRegistered"),
        (
            ("no", "NonRoot"),
            {"processes": (HOLDS,), "logs": (log(SOCKETS),)},
            "yes",
            "MemoryRegistered",
        ),
        (("yes", "Equipped"), {"processes": (OPEN, IDLE)}, "yes", "Equipped"),
    ],
    ids=str,
)
def test_what_was_seen_is_stronger(
    verdict: tuple[str, str], known: dict[str, Any], rdma: str, code: str
) -> None:
    """Registered memory decides, else the log of the current run, else admission."""
    explanation = explain(pod_in_cluster(status(*verdict)), **known)
    assert (explanation.rdma, explanation.answer.code) == (rdma, code)


def test_a_log_without_the_webhook() -> None:
    """A pod that equipped itself may use RDMA, as its log shows."""
    explanation = explain(pod_in_cluster({}), logs=(log(RDMA),))
    assert (
        explanation.answer.text == "The log shows that RDMA is in use (the webhook was not called)."
    )
    assert (explanation.rdma, explanation.answer.remedy) == ("yes", "")
    denied = explain(pod_in_cluster(status()), logs=(log(SOCKETS),))
    assert denied.answer.text == (
        "RDMA is not in use: the log shows TCP sockets (at admission, the pod was equipped)."
    )
    assert denied.answer.remedy


def test_processes() -> None:
    """Each container has findings on the memory of its processes."""
    hidden = ContainerProcesses("sidecar", problem="the image has no ls")
    findings = chapter_findings(
        explain(pod_in_cluster(), processes=(HOLDS, OPEN, IDLE, hidden)), "processes"
    )
    assert [finding.code for finding in findings] == [
        "MemoryRegistered",
        "NothingRegistered",
        "NoDeviceOpen",
        "NotInspected",
    ]
    assert findings[0].text == (
        "In container main, process 7 (python) has registered 2,048 MiB of memory: it uses RDMA."
    )
    assert findings[1].text == (
        "In container main, no process with an RDMA device open has registered memory: 7 (python)."
    )
    assert (
        findings[3].text
        == "The processes of container sidecar could not be inspected: the image has no ls."
    )
    small = ContainerProcesses("main", (RdmaProcess(7, "python", 64),))
    assert (
        "has registered 64 KiB of"
        in chapter_findings(explain(pod_in_cluster(), processes=(small,)), "processes")[0].text
    )


@pytest.mark.parametrize(
    ("lines", "code", "says"),
    [
        ([RDMA], "RdmaInUse", "The log of container main shows RDMA, with GPUDirect RDMA."),
        ([RDMA.replace("/GDRDMA", "")], "RdmaInUse", "shows RDMA, without GPUDirect RDMA."),
        ([TRANSPORTS[2].example], "RdmaInUse", "shows RDMA."),
        ([SOCKETS], "SocketsInUse", "shows TCP sockets, not RDMA."),
        ([RDMA, SOCKETS], "MixedTransports", "shows both"),
        (["NCCL version 2.27.5"], "TransportUnknown", "since NCCL_DEBUG is not INFO"),
        (["a:1:1 [0] NCCL INFO comm"], "NoChannel", "no NCCL channel to another node"),
        (["hello", "bye ", ""], "NothingLogged", "lines from NCCL or UCX. Its last line is: bye"),
        ([""], "NothingLogged", "log of container main has no lines from NCCL or UCX."),
    ],
    ids=str,
)
def test_transports_of_a_log(lines: list[str], code: str, says: str) -> None:
    """The first finding on a log names the network that it shows."""
    finding = chapter_findings(explain(pod_in_cluster(), logs=(log(*lines),)), "log")[0]
    assert finding.code == code
    assert says in finding.text
    assert finding.remedy or code == "RdmaInUse"


@pytest.mark.parametrize(
    ("exit_code", "lines", "remedy"),
    [
        (1, ["ImportError: x"], "If the last line of the log names the cause, correct that."),
        (1, [""], "Set NCCL_DEBUG=INFO"),
        (0, ["done"], "Set NCCL_DEBUG=INFO"),
    ],
)
def test_the_last_line_of_a_container_that_failed(
    exit_code: int, lines: list[str], remedy: str
) -> None:
    """More lines of NCCL would not explain a program that failed before it used NCCL."""
    pod = of_main(state=ended(exit_code, "Error"))
    finding = chapter_findings(explain(pod, logs=(log(*lines),)), "log")[0]
    assert finding.remedy.startswith(remedy)


def test_causes_in_a_log() -> None:
    """Each cause has its first line, the number of its lines, and its remedy."""
    line = "n:1:1 [0] NCCL INFO NET/IB : No device found."
    findings = chapter_findings(
        explain(pod_in_cluster(), logs=(log(line, line), log(previous=True))), "log"
    )
    assert [finding.code for finding in findings] == [
        "NoChannel",
        "NoDeviceFound",
        "NothingLogged",
    ]
    assert findings[1].level == "error"
    assert findings[1].text.endswith(f"In the log (2 times): {line}")
    assert findings[1].remedy.startswith("Check whether the container has /dev/infiniband")
    assert "from before its last restart" in findings[2].text


def test_a_cause_needs_no_network_beside_it() -> None:
    """For a failed benchmark, the absence of lines from NCCL and UCX does not matter."""
    findings = chapter_findings(explain(pod_in_cluster(), logs=(log(NO_MEMORY),)), "log")
    assert [finding.code for finding in findings] == ["PerftestNoMemory"]


@pytest.mark.parametrize(
    ("annotations", "before", "remedy"),
    [
        (
            status(),
            "at admission, the pod was equipped",
            "Run the process as root with the capability IPC_LOCK",
        ),
        (
            status("unsure"),
            "at admission, this was uncertain",
            "Run the process as root with the capability IPC_LOCK",
        ),
        ({}, "the webhook was not called", 'Set rdma.lab/enable: "true"'),
    ],
    ids=["equipped", "unsure", "not called"],
)
def test_a_failed_pod_whose_log_says_why(
    annotations: dict[str, str], before: str, remedy: str
) -> None:
    """It had no RDMA, and the lowest layer is the reason, whatever the status."""
    pod = pod_in_cluster(annotations, limits={"rdma/a": "1"}, phase="Failed")
    explanation = explain(pod, logs=(log("Couldn't create IB resources", NO_MEMORY),))
    assert (explanation.rdma, explanation.answer.level) == ("no", "error")
    assert explanation.answer.code == "PerftestNoMemory"
    assert explanation.answer.text == (
        f"RDMA did not work ({before}). perftest could not register memory, most often because the "
        "limit on locked memory is too low."
    )
    assert remedy in explanation.answer.remedy


@pytest.mark.parametrize(
    ("pod", "logs"),
    [
        (pod_in_cluster(phase="Running"), (log(NO_MEMORY),)),
        (pod_in_cluster(phase="Failed"), (log("Killed"),)),
        (pod_in_cluster(phase="Failed"), (log(NO_MEMORY, previous=True),)),
        (pod_in_cluster(phase="Failed"), (log(NO_MEMORY, RDMA),)),
        (
            pod_in_cluster(phase="Failed"),
            (log("RuntimeError: NCCL error: unhandled system error"),),
        ),
        (pod_in_cluster(phase="Failed"), None),
    ],
    ids=["running", "killed", "before the restart", "over RDMA", "a higher layer", "no log"],
)
def test_other_failures_say_nothing_of_rdma(pod: dict[str, Any], logs: Any) -> None:
    """The status is the answer then."""
    explanation = explain(pod, logs=logs)
    assert (explanation.rdma, explanation.answer.code) == ("yes", "Equipped")


def test_a_failed_pod_that_never_asked() -> None:
    """The missing opt-in is the reason, not its consequences."""
    lines = "Unable to find the Infiniband/RoCE device"
    explanation = explain(pod_in_cluster({}, phase="Failed"), logs=(log(lines),))
    assert (explanation.rdma, explanation.answer.code) == ("no", "NotOptedIn")


def test_owners_are_named() -> None:
    """The explanation names the owners of the pod."""
    explanation = explain(pod_in_cluster(metadata=OWNED), owners=(job(),))
    assert explanation.owners == ("Job train",)


def test_what_could_not_be_read() -> None:
    """The last chapter has a finding for each."""
    explanation = explain(
        pod_in_cluster(), unread_sentences=("You do not have the right to read nodes.",)
    )
    assert explanation.chapters[-1].name == "unread"
    assert codes(explanation, "unread") == ["NotRead"]
