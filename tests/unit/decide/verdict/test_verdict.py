from __future__ import annotations

from typing import Any

import pytest

from tests.builders import container, decide_on, env, gpu, pod
from tests.unit.decide.verdict.judging import judged, verdict_on
from webhook.decide.mutations import MUTATIONS
from webhook.decide.reasons import DECISION_REASONS, REASONS_OUTSIDE_MUTATIONS, VERDICT_REASONS

OFF = env(NCCL_IB_DISABLE="1")
USER: dict[str, Any] = {"securityContext": {"runAsUser": 1}}


def test_an_equipped_pod_gets_a_yes() -> None:
    """There is no warning."""
    verdict = verdict_on(pod())
    assert (verdict.rdma, verdict.because.code) == ("yes", "Equipped")
    assert verdict.message == (
        "Device, memory, network and environment are right for RDMA, assuming that the image runs"
        " as root"
    )
    assert decide_on(pod()).warnings == ()


def test_a_no_comes_before_what_is_not_certain() -> None:
    """The worst target determines the verdict, in any order."""
    unsure, no = gpu("a", **USER), gpu("b", env=OFF)
    for pair in ((unsure, no), (no, unsure)):
        assert judged(pod(*pair)) == ("no", "NcclIbDisabled")
    assert judged(pod(gpu("b"), unsure)) == ("unsure", "MemlockUnknown")
    assert judged(pod(gpu("a", env=OFF, **USER))) == ("no", "NcclIbDisabled")


def test_the_first_of_equals_is_reported() -> None:
    """A single sentence is enough to begin with."""
    assert verdict_on(pod(gpu("a", env=OFF), gpu("b", env=OFF))).message.startswith(
        "container a sets"
    )
    assert verdict_on(pod(gpu("a", **USER), gpu("b", **USER))).message.startswith(
        "container a does not"
    )


def test_a_launcher_needs_no_rdma_itself() -> None:
    """Its workers do, which are other pods."""
    mpirun = container("main", command=["mpirun", "--hostfile", "/etc/mpi/hostfile", "a"])
    verdict = verdict_on(pod(mpirun))
    assert (verdict.rdma, verdict.because.code) == ("none", "Launcher")
    assert verdict.message == (
        "launcher (mpirun --hostfile in its command): the pod only starts ranks in other pods; "
        "see the verdicts of those pods"
    )


def test_a_launcher_may_run_its_ranks_itself() -> None:
    """Without hosts and without a named fabric, it is unknown."""
    verdict = verdict_on(pod(container("main", command=["mpirun", "-np", "4", "a"])))
    assert (verdict.rdma, verdict.because.code) == ("unsure", "RanksUnknown")
    assert verdict.message == (
        "launcher (mpirun in its command): if its ranks run in this pod, set rdma.lab/fabric"
    )
    named = {"rdma.lab/fabric": "v100-ib"}
    here = pod(container("main", command=["mpirun", "-np", "4", "a"]), annotations=named)
    assert judged(here) == ("yes", "Equipped")


def test_a_pod_without_targets_has_no_rdma() -> None:
    """It opted in, so its user expects some."""
    assert judged(pod(container())) == ("no", "NoTarget")


def test_init_containers_are_judged_only_if_they_are_all() -> None:
    """They never get a device."""
    named = {"rdma.lab/containers": "trainer,first", "rdma.lab/fabric": "v100-ib"}
    first = [container("first")]
    assert judged(pod(initContainers=first, annotations=named)) == ("yes", "Equipped")
    alone = {**named, "rdma.lab/containers": "first"}
    verdict = verdict_on(pod(initContainers=first, annotations=alone))
    assert (verdict.rdma, verdict.because.code) == ("no", "DeviceMissing")
    assert verdict.message == (
        "container first gets no RDMA device, since only app containers get one; run it as an app "
        "container"
    )


@pytest.mark.parametrize(
    ("manifest", "code"),
    [
        (pod(annotations={"rdma.lab/fabric": "nowhere"}), "InvalidAnnotation"),
        (pod(annotations={"kubernetes.io/config.mirror": "x"}), "MirrorPod"),
        (pod(os={"name": "windows"}), "WindowsPod"),
        ({"metadata": pod()["metadata"], "spec": 7}, "InvalidPod"),
    ],
    ids=("annotation", "mirror", "windows", "shape"),
)
def test_what_is_denied_or_left_alone_has_no_rdma(manifest: dict[str, object], code: str) -> None:
    """The verdict has the decision's reason."""
    verdict = decide_on(manifest).verdict
    assert verdict is not None
    assert (verdict.rdma, verdict.because.code) == ("no", code)
    assert verdict.message == decide_on(manifest).message


def test_a_pod_that_did_not_opt_in_has_no_verdict() -> None:
    """It did not request a decision."""
    assert decide_on({"metadata": {}, "spec": {}}).verdict is None


def test_each_code_has_at_most_a_single_verdict() -> None:
    """A code of several mutations has the same meaning for RDMA wherever it decides."""
    reasons = (*VERDICT_REASONS, *DECISION_REASONS, *REASONS_OUTSIDE_MUTATIONS)
    reasons += tuple(reason for mutation in MUTATIONS for reason in mutation.reasons)
    decided = {reason.code: reason for reason in reasons if reason.rdma is not None}
    assert set(decided.values()) == set(VERDICT_REASONS)
    assert {reason.rdma for reason in reasons if reason.code in decided} == {
        "yes", "no", "unsure", "none"
    }  # fmt: skip
    for code, decisive in decided.items():
        assert [reason for reason in reasons if reason.code == code and reason != decisive] == []
