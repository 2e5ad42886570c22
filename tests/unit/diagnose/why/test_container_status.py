"""Containers that never ran, and ephemeral containers."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.diagnose.why.pods import chapter_findings, codes, explain, pod_in_cluster
from tests.unit.diagnose.why.test_pod_status import ended, of_main
from webhook.diagnose.why.messages import cut

MESSAGE = 'exec: "trian": executable file not found in $PATH'
IPC_LOCK = {"securityContext": {"capabilities": {"add": ["IPC_LOCK"]}}}


@pytest.mark.parametrize("reason", ["StartError", "ContainerCannotRun"])
@pytest.mark.parametrize("restarts", [0, 2])
def test_a_command_that_cannot_be_started(reason: str, restarts: int) -> None:
    """There is no log to search, with or without restarts: the message names the cause."""
    state = "lastState" if restarts else "state"
    fields = {state: ended(128, reason, message=MESSAGE), "restartCount": restarts}
    _, finding = chapter_findings(explain(of_main(**fields)), "podStatus")
    times = ", and has restarted 2 times" if restarts else ""
    assert (finding.level, finding.code) == ("error", "StartError")
    assert finding.text == f"Container main could not be started{times}: {MESSAGE}"
    assert "log" not in finding.remedy


def test_a_mount_that_the_runtime_cannot_make() -> None:
    """It is no fault of the command."""
    message = 'error mounting "/var/lib/kubelet/x" to rootfs at "/etc": not a directory'
    pod = of_main(state=ended(128, "StartError", message=message))
    pod["status"]["phase"] = "Failed"
    for finding in chapter_findings(explain(pod), "podStatus"):
        assert finding.remedy.startswith("Correct the volumeMount that the message names.")


def test_a_failed_pod_without_a_log() -> None:
    """The pod's own remedy is not to search the log either, unless another container ran."""
    pod = of_main(state=ended(128, "StartError", message=MESSAGE))
    pod["status"]["phase"] = "Failed"
    failed, start = chapter_findings(explain(pod), "podStatus")
    assert (failed.code, failed.remedy) == ("Failed", start.remedy)


def ephemeral(**fields: Any) -> dict[str, Any]:
    """Return a pod with an ephemeral container."""
    return pod_in_cluster(spec={"ephemeralContainers": [{"name": "debugger", **fields}]})


def test_an_ephemeral_container_without_the_capability() -> None:
    """It is mentioned, since `kubectl debug` adds it after the webhook's call."""
    _, finding = chapter_findings(explain(ephemeral()), "podStatus")
    assert (finding.level, finding.code) == ("info", "EphemeralWithoutIpcLock")
    assert finding.text == (
        "The ephemeral container debugger has no IPC_LOCK and no RDMA device, so RDMA fails in "
        "it, whatever the pod's own containers have."
    )


@pytest.mark.parametrize("fields", [IPC_LOCK, {"securityContext": {"privileged": True}}])
def test_other_ephemeral_containers(fields: dict[str, Any]) -> None:
    """One with the capability is not mentioned."""
    assert codes(explain(ephemeral(**fields)), "podStatus") == ["Running"]


def test_a_pod_of_any_shape() -> None:
    """A file may have any shape."""
    pod = ephemeral()
    pod["spec"]["containers"] = "x"
    assert codes(explain(pod), "podStatus") == ["Running"]


@pytest.mark.parametrize(
    ("message", "shown"),
    [
        ("a\n  b", "a b"),
        ("x" * 400, "x" * 400),
        ("x" * 200 + "y" * 201, "x" * 198 + " … " + "y" * 198),
        ("x" * 197 + " y" + "z" * 300, "x" * 197 + " … " + "z" * 198),
        ("x" * 300 + "y " + "z" * 197, "x" * 198 + " … " + "z" * 197),
    ],
)
def test_long_messages(message: str, shown: str) -> None:
    """A message that is cut keeps its end: container runtimes put the cause there."""
    assert cut(message) == shown
