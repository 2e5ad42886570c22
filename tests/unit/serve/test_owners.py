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
from webhook.serve.metrics import Metrics
from webhook.serve.options import ServeOptions

JOB = {"apiVersion": "batch/v1", "kind": "Job", "name": "train", "uid": "7", "controller": True}
OFF = gpu(env=env(NCCL_IB_DISABLE="1"))


def request(
    *containers: dict[str, Any], dry_run: bool = False, annotations: dict[str, str] | None = None
) -> AdmissionRequest:
    """Make a request for a Job's pod."""
    manifest = pod(*containers, annotations=annotations)
    manifest["metadata"]["ownerReferences"] = [JOB]
    return AdmissionRequest("0", "lab", "train-*", dry_run, "", manifest)


def test_the_owner_of_a_pod_without_rdma_is_notified() -> None:
    """The notice has the reason code and the sentence of the verdict."""
    admission = request(OFF)
    assert owner_notices(admission, decide_on(admission.pod)) == [
        WithoutRdma(
            OwnerReference("batch/v1", "Job", "train", "7"),
            "lab",
            "NcclIbDisabled",
            "container trainer sets NCCL_IB_DISABLE=1; remove the variable",
        )
    ]


@pytest.mark.parametrize(
    "admission",
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
def test_no_other_owner_is_notified(admission: AdmissionRequest) -> None:
    """A denied pod's controller reports it itself; a dry run has no side effects."""
    assert owner_notices(admission, decide_on(admission.pod)) == []


@pytest.mark.parametrize(
    ("field", "longest"), [("apiVersion", 128), ("kind", 64), ("name", 253), ("uid", 64)]
)
def test_an_owner_that_cannot_exist_is_not_notified(field: str, longest: int) -> None:
    """The API server accepts a name of a megabyte in a pod, and notices wait in memory."""
    admission = request(OFF)
    for length, count in ((longest, 1), (longest + 1, 0)):
        admission.pod["metadata"]["ownerReferences"] = [{**JOB, field: "x" * length}]
        assert len(owner_notices(admission, decide_on(admission.pod))) == count


@pytest.mark.parametrize(
    ("field", "value"),
    [
        *(("kind", kind) for kind in ("Pod", "namespace", "Node", "a b", "")),
        *(
            (field, "tr\N{LATIN SMALL LETTER A WITH DIAERESIS}in")
            for field in JOB
            if field != "controller"
        ),
        *((field, "a\x1b") for field in JOB if field != "controller"),
    ],
)
def test_an_owner_that_the_guard_refuses_is_not_notified(field: str, value: str) -> None:
    """Such an Event could not be created, and each failure raises an alert."""
    admission = request(OFF)
    admission.pod["metadata"]["ownerReferences"] = [{**JOB, field: value}]
    assert owner_notices(admission, decide_on(admission.pod)) == []


@pytest.mark.parametrize("kind", ["Nodes", "PodGroup", "RayCluster"])
def test_other_kinds_are_notified(kind: str) -> None:
    """Any custom resource may own pods."""
    admission = request(OFF)
    admission.pod["metadata"]["ownerReferences"] = [{**JOB, "kind": kind}]
    assert len(owner_notices(admission, decide_on(admission.pod))) == 1


@pytest.mark.parametrize("name", ["x. Run `this`", "x" * 64, "Trainer", ""])
@pytest.mark.parametrize("field", ["containers", "initContainers"])
def test_the_name_of_no_container_is_free_text_in_an_event(field: str, name: str) -> None:
    """The API server refuses such a pod, after the webhook has decided on it."""
    admission = request(OFF)
    admission.pod["spec"].setdefault(field, []).append(gpu(name=name, env=OFF["env"]))
    decision = decide_on(admission.pod)
    assert decision.verdict is not None
    assert decision.verdict.rdma == "no"
    assert owner_notices(admission, decision) == []


def test_a_notice_is_cut_before_it_waits() -> None:
    """It repeats names of the pod, which have any length in a stranger's review."""
    admission = request(OFF)
    decision = decide_on(admission.pod)
    assert decision.verdict is not None
    long = decision.verdict._replace(message="x" * 1025)
    (notice,) = owner_notices(admission, decision._replace(verdict=long))
    assert notice.message == "x" * 1024


def test_a_notifier_that_fails_reports_the_reason(tmp_path: Path) -> None:
    """The log gets a line with the reason; a metric counts the missing Event."""
    lines, file, metrics = Lines(), tmp_path / "config", Metrics()
    admission = request(OFF)
    tell = owner_notifier(ServeOptions(kubeconfig=file), metrics, lines.log, {"POD_NAME": "x"})
    tell(admission, decide_on(admission.pod), "192.0.2.1")
    lines_read: list[dict[str, object]] = []

    def logged() -> bool:
        lines_read.extend(lines.read())
        return bool(lines_read)

    until(logged)
    assert lines_read[0]["msg"] == "could not record the event"
    assert str(lines_read[0]["problem"]).startswith(f"the kubeconfig {file} does not exist")
    assert metrics.registry.get_sample_value("rdma_webhook_event_failures_total") == 1


def test_a_replica_notifies_in_its_own_name(monkeypatch: pytest.MonkeyPatch) -> None:
    """Outside a pod there is no notice."""
    notices: list[tuple[str, WithoutRdma, str]] = []

    class Events:
        def __init__(self, reporter: str, *_: Any) -> None:
            self.reporter = reporter

        def tell(self, notice: WithoutRdma, client_address: str) -> None:
            notices.append((self.reporter, notice, client_address))

    monkeypatch.setattr(events, "OwnerEvents", Events)
    admission = request(OFF)
    decision = decide_on(admission.pod)
    for environment in ({}, {"POD_NAME": "rdma-webhook-x"}):
        notify = owner_notifier(ServeOptions(), Metrics(), Lines().log, environment)
        notify(admission, decision, "192.0.2.1")
    (notice,) = owner_notices(admission, decision)
    assert notices == [("rdma-webhook-x", notice, "192.0.2.1")]
