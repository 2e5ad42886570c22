"""`verify nccl` with the real mpi-operator on two real nodes: its results, and its cleanup.

nccl-tests need GPUs, which no machine of the tests has: a stand-in prints a table in their format.
Open MPI, ssh, the operator and the webhook are real.
"""

from __future__ import annotations

import json
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.cluster.controllers import mpi_operator
from tests.e2e.documents import apply
from tests.e2e.verify.conftest import RunNamespace
from tests.e2e.verify.running import Running, verify
from tests.unit.diagnose.verify.runs.plans import FABRIC
from tests.waiting import until
from webhook.diagnose.verify.runs.nccl_job import NcclPlan, mpi_job

#: Two HCAs of 200 Gb/s carry 50 GB/s.
RATE = ("--rate", "200")
STAND_IN = ("--test", "/opt/stand-in/all_reduce_perf")
Start = Callable[..., Running]


def jobs(lab: RunNamespace) -> str:
    """Return the names of the MPIJobs in the namespace."""
    return lab.cluster.kubectl("get", "mpijobs", f"--namespace={lab.name}", "--output=name")


@pytest.fixture
def start(lab: RunNamespace) -> Iterator[Start]:
    """Return a function that starts a run; end the runs that a test leaves."""
    started: list[Running] = []

    def begin(*words: str | Path) -> Running:
        started.append(Running(lab, *words, command="nccl"))
        return started[-1]

    yield begin
    for run in started:
        run.kill()


def test_without_mpi_operator(lab: RunNamespace, start: Start) -> None:
    """Without MPIJobs in the cluster, the error names what to install; clean finds nothing."""
    kind = "customresourcedefinition/mpijobs.kubeflow.org"  # other tests may have brought it
    lab.cluster.kubectl("delete", kind, "--ignore-not-found")
    run = start("--image", lab.mpi, *STAND_IN)
    code, out = run.wait()
    assert (code, out) == (2, "")
    assert "install mpi-operator" in run.printed[-1]
    cleaned = verify(lab, "clean", "-n", lab.name)
    assert (cleaned.returncode, cleaned.stdout) == (0, "")


@pytest.fixture(scope="module")
def operator(lab: RunNamespace) -> Iterator[None]:
    """Run mpi-operator."""
    with mpi_operator(lab.cluster):
        yield


@pytest.mark.usefixtures("operator")
def test_a_collective(lab: RunNamespace, start: Start, tmp_path: Path) -> None:
    """A rank runs on each of the two nodes, equipped by the webhook; its table is judged."""
    run = start("--image", lab.mpi, *STAND_IN, *RATE, "-o", "json", "--logs", tmp_path)
    code, out = run.wait()
    assert code == 0, (run.printed, [log.read_text() for log in tmp_path.iterdir()])
    form = json.loads(out)
    assert (form["level"], form["code"]) == ("ok", "OverRdma")
    (result,) = form["results"]
    assert (result["run"]["ranks"], result["run"]["nodes"]) == (2, 2)
    assert result["gbps"] == pytest.approx(46.65 * 8)
    (log,) = tmp_path.iterdir()
    # The webhook has switched hcoll off in the launcher's script.
    assert "mpirun -mca coll_hcoll_enable 0 --allow-run-as-root -np 2 " in log.read_text()
    assert (lab.pods(), jobs(lab)) == ([], "")


@pytest.fixture
def worker(lab: RunNamespace) -> Iterator[str]:
    """Start a worker's pod with a key, as mpi-operator would, and return its name."""
    plan = NcclPlan("verify-sshd", FABRIC, ("real-0",), 1, "nvidia.com/v100", lab.mpi, "", "", 60)
    template = mpi_job(plan)["spec"]["mpiReplicaSpecs"]["Worker"]["template"]
    (container,) = template["spec"]["containers"]
    container["imagePullPolicy"] = "Never"
    template["metadata"]["annotations"] = {}
    pod = {"apiVersion": "v1", "kind": "Pod", **template}
    pod["metadata"] |= {"name": plan.name, "namespace": lab.name}
    apply(lab.cluster, pod)
    here = f"--namespace={lab.name}"
    lab.cluster.kubectl(here, "wait", "--for=condition=Ready", f"pod/{plan.name}", "--timeout=300s")
    key = "mkdir -p ~/.ssh; cd ~/.ssh; ssh-keygen -qN '' -f id_rsa; cp id_rsa.pub authorized_keys"
    lab.cluster.kubectl(here, "exec", plan.name, "--", "sh", "-c", key)
    yield plan.name
    lab.cluster.kubectl(here, "delete", "pod", plan.name, "--wait=false")


def test_sshd_lets_in_nobody_else(lab: RunNamespace, worker: str) -> None:
    """Only the key opens it, only at the pod's address, only for its user; it forwards nothing."""
    ssh = "ssh -p 2222 -o StrictHostKeyChecking=no -o LogLevel=ERROR"

    def inside(command: str) -> str:
        run = ("exec", worker, "--", "sh", "-c", f"{command} 2>&1 || true")
        return lab.cluster.kubectl(f"--namespace={lab.name}", *run).strip()

    assert inside(f"{ssh} $SSHD_ADDRESS id -un") == "root"
    assert inside(f"{ssh} 127.0.0.1 id").endswith("port 2222: Connection refused")
    without_key = f"{ssh} -o PubkeyAuthentication=no $SSHD_ADDRESS id"
    assert inside(without_key).endswith("Permission denied (publickey).")
    account = "mkdir -p /home/other && cp -r ~/.ssh /home/other && useradd -d /home/other other"
    inside(f"{account} && chown -R other /home/other")
    assert inside(f"{ssh} other@$SSHD_ADDRESS id").endswith("Permission denied (publickey).")
    forwarded = f"{ssh} -W $SSHD_ADDRESS:2222 $SSHD_ADDRESS"
    assert inside(forwarded) == "stdio forwarding failed"


@pytest.mark.usefixtures("operator")
def test_images_that_lack_something(lab: RunNamespace, start: Start) -> None:
    """An image without nccl-tests, and one without sshd, are explained."""
    for image, missing in ((lab.mpi, "all_reduce_perf"), (lab.real, "sshd")):
        run = start("--image", image, "-o", "json")
        code, out = run.wait()
        assert code == 3, run.printed
        form = json.loads(out)
        assert (form["level"], form["code"]) == ("unsure", "NoNcclTests")
        assert form["text"] == f"The image has no {missing}."
        assert (lab.pods(), jobs(lab)) == ([], "")


@pytest.mark.usefixtures("operator")
def test_gpus_that_no_node_has(lab: RunNamespace, start: Start) -> None:
    """Workers that fit nowhere are explained as `why` explains them."""
    # Long enough for operator and scheduler to have looked at the workers.
    options = ("--gpu-resource", "lab.invalid/gpu", "--timeout", "20s")
    run = start("--image", lab.mpi, *STAND_IN, "-o", "json", *options)
    code, out = run.wait()
    assert code == 3, run.printed
    form = json.loads(out)
    assert (form["level"], form["code"]) == ("unsure", "OfferedNowhere")
    assert (lab.pods(), jobs(lab)) == ([], "")


@pytest.mark.usefixtures("operator")
def test_interrupted(lab: RunNamespace, start: Start) -> None:
    """Ctrl-C deletes the job and its pods."""
    run = start("--image", lab.mpi, *STAND_IN)
    run.until("MPIJob created")
    until(lambda: len(lab.pods()) > 1)  # the operator has made the workers
    run.signal(signal.SIGINT)
    code, out = run.wait()
    assert code == 130, run.printed
    assert "unsure (Interrupted)" in out
    assert (lab.pods(), jobs(lab)) == ([], "")


@pytest.mark.usefixtures("operator")
def test_clean_after_a_killed_run(lab: RunNamespace, start: Start) -> None:
    """`verify clean` deletes the job first, so that its pods do not come again."""
    run = start("--image", lab.mpi, *STAND_IN)
    run.until("MPIJob created")
    until(lambda: len(lab.pods()) > 1)
    run.signal(signal.SIGKILL)
    run.wait()
    assert jobs(lab)
    cleaned = verify(lab, "clean", "-n", lab.name)
    assert cleaned.returncode == 0, cleaned.stderr
    assert "deleted MPIJob measured/verify-" in cleaned.stdout
    assert (lab.pods(), jobs(lab)) == ([], "")
