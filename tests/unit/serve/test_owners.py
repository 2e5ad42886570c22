from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.builders import container, decide_on, env, gpu, pod
from tests.unit.serve.client import Lines
from tests.waiting import until
from webhook.admission.review import AdmissionRequest
from webhook.kube.events import WithoutRdma
from webhook.model.pod import OwnerReference
from webhook.serve import events
from webhook.serve.events import owner_notices, owner_notifier
from webhook.serve.options import ServeOptions

JOB = {"apiVersion": "batch/v1", "kind": "Job", "name": "train", "uid": "7", "controller": True}
OFF = gpu(env=env(NCCL_IB_DISABLE="1"))


def request(
    *containers: dict[str, Any], dry_run: bool = False, annotations: dict[str, str] | None = None
) -> AdmissionRequest:
    """Make a request for a Job's pod."""
    made = pod(*containers, annotations=annotations)
    made["metadata"]["ownerReferences"] = [JOB]
    return AdmissionRequest("0", "lab", "train-*", dry_run, "", made)


def test_the_owner_of_a_pod_without_rdma_is_told() -> None:
    """It learns the reason code and the sentence of the verdict."""
    asked = request(OFF)
    assert owner_notices(asked, decide_on(asked.pod)) == [
        WithoutRdma(
            OwnerReference("batch/v1", "Job", "train", "7"),
            "lab",
            "NcclIbDisabled",
            "trainer sets NCCL_IB_DISABLE=1: remove it",
        )
    ]


@pytest.mark.parametrize(
    "asked",
    [
        request(),
        request(gpu(securityContext={"runAsUser": 1})),
        request(container(command=["mpirun", "--hostfile", "h", "a"])),
        request(OFF, annotations={"rdma.lab/fabric": "nowhere"}),
        request(OFF, dry_run=True),
        request(OFF, annotations={"rdma.lab/enable": "false"}),
    ],
    ids=("yes", "unsure", "none", "denied", "dry run", "not opted in"),
)
def test_nobody_else_is_told(asked: AdmissionRequest) -> None:
    """A denied pod's controller says so itself; a dry run has no side effects."""
    assert owner_notices(asked, decide_on(asked.pod)) == []


def test_who_cannot_tell_says_so_in_the_log(tmp_path: Path) -> None:
    """The log gets a line with the reason."""
    lines, file = Lines(), tmp_path / "config"
    asked = request(OFF)
    tell = owner_notifier(ServeOptions(kubeconfig=file), lines.log, {"POD_NAME": "x"})
    tell(asked, decide_on(asked.pod))
    found: list[dict[str, object]] = []

    def told() -> bool:
        found.extend(lines.read())
        return bool(found)

    until(told)
    assert found[0]["msg"] == "could not record the event"
    assert str(found[0]["problem"]).startswith(f"the kubeconfig {file} does not exist: ")


def test_a_replica_tells_in_its_own_name(monkeypatch: pytest.MonkeyPatch) -> None:
    """Outside a pod there is nobody to tell."""
    told: list[tuple[str, WithoutRdma]] = []

    class Events:
        def __init__(self, reporter: str, *_: Any) -> None:
            self.reporter = reporter

        def tell(self, one: WithoutRdma) -> None:
            told.append((self.reporter, one))

    monkeypatch.setattr(events, "OwnerEvents", Events)
    asked = request(OFF)
    decision = decide_on(asked.pod)
    for environment in ({}, {"POD_NAME": "rdma-webhook-x"}):
        owner_notifier(ServeOptions(), Lines().log, environment)(asked, decision)
    assert told == [("rdma-webhook-x", one) for one in owner_notices(asked, decision)]
