from __future__ import annotations

import pytest

from tests.builders import container, env, pod
from tests.unit.decide.verdict.judging import judged, verdict_on
from webhook.model.pod import PodManifest

LABEL = {"training.kubeflow.org/job-role": "launcher"}


def launcher(script: str) -> PodManifest:
    """Make the pod of a launcher that runs a script."""
    return pod(container(command=["bash", "-c", script]), labels=LABEL)


@pytest.mark.parametrize(
    ("script", "setting", "source"),
    [
        ("mpirun -x NCCL_IB_DISABLE=1 a", "NCCL_IB_DISABLE=1", "mpirun -x"),
        ("mpirun -x NCCL_NET=Socket a", "NCCL_NET=Socket", "mpirun -x"),
        ("export NCCL_NET=Socket; deepspeed a", "NCCL_NET=Socket", "export"),
    ],
)
def test_a_launcher_that_turns_rdma_off(script: str, setting: str, source: str) -> None:
    """Its ranks have no RDMA, whatever their own pods get."""
    verdict = verdict_on(launcher(script))
    assert (verdict.rdma, verdict.because.code) == ("no", "RanksWithoutRdma")
    assert verdict.message == (
        f"container trainer starts its ranks with {setting} ({source} in its command): remove it"
    )


@pytest.mark.parametrize(
    "script",
    [
        "mpirun -x NCCL_NET=IB a",
        "mpirun -x NCCL_IB_DISABLE=0 a",
        "mpirun -x UCX_TLS=tcp a",
        "export NCCL_NET=Socket; mpirun a",
        "mpirun -x NCCL_NET=$X a",
    ],
)
def test_other_launchers(script: str) -> None:
    """The verdicts of the workers count."""
    assert judged(launcher(script)) == ("none", "Launcher")


@pytest.mark.parametrize(
    ("script", "setting"),
    [
        ("mpirun -H a,b -mca pml ob1 -mca btl tcp osu_bw", "pml ob1 and btl tcp"),
        ("export I_MPI_OFI_PROVIDER=tcp; mpiexec.hydra -f h IMB-MPI1", "I_MPI_OFI_PROVIDER=tcp"),
    ],
)
def test_a_launcher_that_keeps_mpis_benchmarks_on_tcp(script: str, setting: str) -> None:
    """MPI moves the data of their ranks."""
    verdict = verdict_on(launcher(script))
    assert (verdict.rdma, verdict.because.code) == ("no", "RanksWithoutRdma")
    assert verdict.message == f"container trainer starts MPI's ranks with {setting}: remove it"


def test_parameters_in_the_env_of_a_launcher() -> None:
    """Open MPI passes them on; other variables stay where they are."""
    values = {"OMPI_MCA_pml": "ob1", "OMPI_MCA_btl": "tcp,self", "FI_PROVIDER": "tcp"}
    main = container(command=["mpirun", "osu_bw"], env=env(**values))
    verdict = verdict_on(pod(main, labels=LABEL))
    assert verdict.message == (
        "container trainer starts MPI's ranks with pml ob1 and btl tcp,self: remove it"
    )
    cm = env(OMPI_MCA_pml="cm", FI_PROVIDER="tcp")
    kept = pod(container(command=["mpirun", "osu_bw"], env=cm), labels=LABEL)
    assert judged(kept) == ("none", "Launcher")


@pytest.mark.parametrize("script", ["mpirun -mca pml ob1 osu_bw", "mpirun -mca pml ucx osu_bw"])
def test_launchers_of_mpis_benchmarks_with_rdma(script: str) -> None:
    """Or perhaps with RDMA."""
    assert judged(launcher(script)) == ("none", "Launcher")


def test_a_launcher_of_a_program_that_may_use_nccl() -> None:
    """What MPI uses does not matter then."""
    assert judged(launcher("mpirun -mca pml ob1 -mca btl tcp a")) == ("none", "Launcher")
