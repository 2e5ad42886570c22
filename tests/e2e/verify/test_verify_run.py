"""`verify run` on two real nodes: its results, its explanations, and its cleanup.

There is no RDMA device here: real perftest fails for that, and is explained. Where a run has to
measure, a stand-in takes the place of perftest.
"""

from __future__ import annotations

import signal
from collections.abc import Iterator
from dataclasses import replace

import pytest
import yaml

from tests.cluster.images import ROOT
from tests.e2e.documents import apply, make_namespaces, namespace
from tests.e2e.rights import wait_for_right
from tests.e2e.verify.conftest import RunNamespace
from tests.e2e.verify.running import Running, Runs, measured, verify

#: A run's message at a step → options that keep the run at this step, if that is possible.
STEPS = {
    "server created": ("--seconds", "3600"),
    "is waiting: ": ("--image", "lab.invalid/none:1"),
    "client created": ("--seconds", "3600"),
    "measuring": ("--seconds", "3600"),
    "reading both logs": ("--seconds", "5"),
}
#: A run leaves this step by itself, so that a signal may come too late.
LAST = "reading both logs"
#: Where runs are killed: one pod is left, or two.
KILLED = ("server created", "measuring")
PAGE = (ROOT / "docs" / "verify.md").read_text()


@pytest.fixture(scope="module")
def unlabeled(lab: RunNamespace) -> Iterator[RunNamespace]:
    """Return a namespace for which the webhook is not called."""
    unlabeled = replace(lab, name="unmeasured")
    make_namespaces(lab.cluster, namespace(unlabeled.name, None))
    yield unlabeled
    lab.cluster.kubectl("delete", "namespace", unlabeled.name, "--wait=false")


@pytest.fixture(scope="module")
def runs(
    lab: RunNamespace, unlabeled: RunNamespace, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Runs]:
    """Start all runs that end by themselves, at once."""
    text = PAGE.partition("<!-- rights -->")[2].partition("```yaml\n")[2].partition("```")[0]
    rights = yaml.safe_load_all(text.replace("namespace: lab", f"namespace: {lab.name}"))
    apply(lab.cluster, *rights)
    wait_for_right(lab.cluster, "alice", "create", "pods", space=lab.name)
    wait_for_right(lab.cluster, "alice", "list", "nodes")
    logs = tmp_path_factory.mktemp("logs")
    started = {
        "no device": Running(lab, "--image", lab.real, "-o", "json", "--logs", logs),
        "rights": Running(
            lab, "--image", lab.stand_in, "-o", "json", "--seconds", "5", "--as", "alice"
        ),
        # Long enough for the scheduler to have looked at the pod.
        "no room": Running(lab, "--devices", "64", "--timeout", "20s", "-o", "json"),
        "not called": Running(unlabeled, "-o", "json"),
    }
    yield Runs(started, logs)
    for run in started.values():
        run.kill()


def test_without_a_device(runs: Runs) -> None:
    """Real perftest finds none, with a finding for each HCA of the pair."""
    form = runs.form("no device", 1)
    assert (form["level"], form["code"]) == ("error", "NoRdmaDevice")
    findings = [result["finding"] for result in measured(form)]
    assert [finding["code"] for finding in findings] == ["NoRdmaDevice"] * 2
    for finding, device in zip(findings, ("mlx5_0", "mlx5_1"), strict=True):
        assert finding["location"]["nodes"] == ["real-0", "real-1"]
        assert finding["location"]["device"] == device
    log = (runs.logs / "real-0_real-1.txt").read_text()
    assert "+ ib_write_bw -d mlx5_1 -p 18516 " in log


def test_with_the_rights_of_the_documentation(lab: RunNamespace, runs: Runs) -> None:
    """They suffice for a run that measures, with the cluster's facts about fabric and nodes."""
    form = runs.form("rights", 0)
    assert [(result["finding"]["code"], result["gbps"]) for result in measured(form)] == [
        ("AtRate", 97.0)
    ] * 2
    lines = runs.started["rights"].printed
    assert not [line for line in lines if "lack" in line or "error" in line]
    assert verify(lab, "clean", "-n", lab.name, "--run", "none", "--as", "alice").returncode == 0


def test_a_pod_that_does_not_start(runs: Runs) -> None:
    """The scheduler's reason is explained; it is no evidence about the network."""
    form = runs.form("no room", 3)
    assert (form["level"], form["code"]) == ("unsure", "TooLarge")
    assert "did not start within 20 s. " in form["text"]
    assert "rdma/rdma_v100" in form["text"]


def test_a_namespace_without_the_label(unlabeled: RunNamespace, runs: Runs) -> None:
    """The webhook is not called there: the run ends with the first pod, with a remedy."""
    form = runs.form("not called", 1)
    assert form["code"] == "NamespaceNotLabeled"
    assert "kubectl label --overwrite namespace unmeasured" in form["remedy"]
    assert unlabeled.pods() == []


def test_nothing_is_left(lab: RunNamespace, runs: Runs) -> None:
    """Whatever their results, runs delete their pods."""
    for run in runs.started.values():
        run.wait()
    assert lab.pods() == []


def test_ended_at_each_step(lab: RunNamespace) -> None:
    """After Ctrl-C no pod is left, whatever a run does; after SIGKILL, `verify clean` deletes all.

    All of these runs take place at the same time.
    """
    cases = [(step, signal.SIGINT) for step in STEPS]
    cases += [(step, signal.SIGKILL) for step in KILLED]
    runs = {key: Running(lab, "--image", lab.stand_in, *STEPS[key[0]]) for key in cases}
    for (step, how), run in runs.items():
        run.until(step)
        run.signal(how)
    for (step, how), run in runs.items():
        code, out = run.wait()
        remaining = lab.pods(f"app.kubernetes.io/instance={run.name}")
        if how == signal.SIGINT:
            assert code == 130 or step == LAST, run.printed
            assert "0 of 1 pair." in out or step == LAST
            assert remaining == []
        else:
            assert code == -signal.SIGKILL
            assert remaining
    first = runs["server created", signal.SIGKILL].name
    cleaned = verify(lab, "clean", "-n", lab.name, "--run", first)
    assert (cleaned.returncode, cleaned.stderr) == (0, "")
    assert f"deleted pod {lab.name}/{first}-0-server of {first}" in cleaned.stdout
    other_pods = lab.pods()
    assert other_pods
    assert not [name for name in other_pods if name.startswith(first)]
    assert verify(lab, "clean", "-n", lab.name).returncode == 0
    assert lab.pods() == []
