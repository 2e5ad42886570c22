from __future__ import annotations

import pytest

from tests.builders import container, decision_input, env, fabric, pod
from tests.unit.decide.verdict.judging import judged, verdict_on
from webhook.model.fabric import FabricEnv
from webhook.model.facts import NamespaceFacts
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
        f"container trainer starts its ranks with {setting} ({source} in its command); remove "
        "that setting"
    )


@pytest.mark.parametrize(
    "script",
    [
        "mpirun -x NCCL_NET=IB a",
        "mpirun -x NCCL_IB_DISABLE=0 a",
        "mpirun -x UCX_TLS=tcp all_reduce_perf",
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
        (
            "export I_MPI_OFI_PROVIDER=tcp; mpiexec.hydra -f h IMB-MPI1",
            "I_MPI_OFI_PROVIDER=tcp (export in its command)",
        ),
        ("mpirun -H a,b -x UCX_TLS=tcp osu_bw", "UCX_TLS=tcp (mpirun -x in its command)"),
        (
            "mpirun -H a,b -mca pml ob1 -x UCX_TLS=tcp osu_bw",
            "UCX_TLS=tcp (mpirun -x in its command)",
        ),
    ],
)
def test_a_launcher_that_keeps_mpis_benchmarks_on_tcp(script: str, setting: str) -> None:
    """MPI moves the data of their ranks."""
    verdict = verdict_on(launcher(script))
    assert (verdict.rdma, verdict.because.code) == ("no", "RanksWithoutRdma")
    assert (
        verdict.message
        == f"container trainer starts MPI's ranks with {setting}; remove that setting"
    )


@pytest.mark.parametrize(
    ("own", "expected"),
    [("1", ("no", "RanksWithoutRdma")), ("0", ("none", "Launcher"))],
)
def test_a_default_in_the_command_of_a_launcher(own: str, expected: tuple[str, str]) -> None:
    """Its own variable wins, for good or ill."""
    default = "0" if own == "1" else "1"
    script = f"export NCCL_IB_DISABLE=${{NCCL_IB_DISABLE:-{default}}}; deepspeed a"
    main = container(command=["sh", "-c", script], env=env(NCCL_IB_DISABLE=own))
    assert judged(pod(main, labels=LABEL)) == expected
    assert judged(launcher(script))[0] == ("no" if default == "1" else "none")
    blamed = verdict_on(pod(container(**main), labels=LABEL)).message
    assert ("with NCCL_IB_DISABLE=1 (env); remove that setting" in blamed) is (own == "1")


@pytest.mark.parametrize(
    ("script", "rdma"),
    [
        ("deepspeed a", "no"),
        ("export NCCL_DEBUG=INFO; deepspeed a", "no"),
        ("unset NCCL_IB_DISABLE; deepspeed a", "none"),
        ("export NCCL_IB_DISABLE=0; deepspeed a", "none"),
        ("env -i deepspeed a", "none"),
        ("mpirun -H a,b a", "none"),
        ("ray start --head", "none"),
    ],
)
def test_variables_of_a_launcher_that_passes_them_on(script: str, rdma: str) -> None:
    """Ranks get them, unless its command changes them; Open MPI passes on only OMPI_*."""
    main = container(command=["sh", "-c", script], env=env(NCCL_IB_DISABLE="1"))
    verdict = verdict_on(pod(main, labels=LABEL))
    assert verdict.rdma == rdma
    assert ("NCCL_IB_DISABLE=1 (env); remove that setting" in verdict.message) is (rdma == "no")


def test_a_default_of_a_parameter() -> None:
    """Open MPI's ranks get it from the launcher's env."""
    script = "export OMPI_MCA_pml=${OMPI_MCA_pml:-ob1} OMPI_MCA_btl=tcp; mpirun osu_bw"
    main = container(command=["sh", "-c", script], env=env(OMPI_MCA_pml="ucx"))
    assert judged(pod(main, labels=LABEL)) == ("none", "Launcher")
    assert verdict_on(launcher(script)).message == (
        "container trainer starts MPI's ranks with pml ob1 and btl tcp; remove that setting"
    )


def test_a_known_script_of_a_launcher() -> None:
    """It shows that MPI moves the data, and what it sets."""
    scripts = {"run.sh": "mpirun -H a,b -x UCX_TLS=tcp osu_bw"}
    cluster = decision_input(namespace=NamespaceFacts(name="lab", config_maps={"s": scripts}))
    mounts = [{"name": "s", "mountPath": "/scripts"}]
    main = container(command=["sh", "/scripts/run.sh"], volumeMounts=mounts)
    manifest = pod(main, labels=LABEL, volumes=[{"name": "s", "configMap": {"name": "s"}}])
    verdict = verdict_on(manifest, cluster)
    assert verdict.message == (
        "container trainer starts MPI's ranks with UCX_TLS=tcp (mpirun -x in key run.sh of "
        "ConfigMap s); remove that setting"
    )


def test_parameters_in_the_env_of_a_launcher() -> None:
    """Open MPI passes them on; other variables stay where they are."""
    values = {"OMPI_MCA_pml": "ob1", "OMPI_MCA_btl": "tcp,self", "FI_PROVIDER": "tcp"}
    main = container(command=["mpirun", "osu_bw"], env=env(**values))
    verdict = verdict_on(pod(main, labels=LABEL))
    assert verdict.message == (
        "container trainer starts MPI's ranks with pml ob1 and btl tcp,self; remove that setting"
    )
    cm = env(OMPI_MCA_pml="cm", FI_PROVIDER="tcp")
    kept = pod(container(command=["mpirun", "osu_bw"], env=cm), labels=LABEL)
    assert judged(kept) == ("none", "Launcher")


@pytest.mark.parametrize("script", ["mpirun -mca pml ob1 osu_bw", "mpirun -mca pml ucx osu_bw"])
def test_launchers_of_mpis_benchmarks_with_rdma(script: str) -> None:
    """Or perhaps with RDMA."""
    assert judged(launcher(script)) == ("none", "Launcher")


@pytest.mark.parametrize(
    ("script", "setting"),
    [
        ("mpirun -H a,b -mca pml ob1 -mca btl tcp ./a", "pml ob1 and btl tcp"),
        ("mpirun -H a,b -x UCX_TLS=tcp ./a", "UCX_TLS=tcp (mpirun -x in its command)"),
        (
            "export OMPI_MCA_pml=ob1 OMPI_MCA_btl=tcp; mpirun -H a,b ./a",
            "pml ob1 and btl tcp",
        ),
    ],
)
def test_a_launcher_of_a_program_that_shows_no_library(script: str, setting: str) -> None:
    """MPI may move its data."""
    verdict = verdict_on(launcher(script))
    assert (verdict.rdma, verdict.because.code) == ("unsure", "MPIUnlessNccl")
    assert verdict.message == (
        f"container trainer starts MPI's ranks with {setting}; remove that setting (no "
        "action is needed if NCCL moves the data)"
    )


@pytest.mark.parametrize(
    "script",
    [
        "mpirun -H a,b -mca pml ob1 -mca btl tcp all_reduce_perf",
        "mpirun -H a,b -mca pml ob1 -mca btl tcp -x NCCL_DEBUG=INFO ./a",
        "mpirun -H a,b -mca pml ob1 ./a",
        "OMPI_MCA_pml=ob1 OMPI_MCA_btl=tcp ray start --head",
    ],
)
def test_launchers_whose_mpi_does_not_matter(script: str) -> None:
    """NCCL moves the data, or it is not certain that MPI uses TCP, or no MPI starts a program."""
    assert judged(launcher(script)) == ("none", "Launcher")


def test_what_a_fabric_sets_does_not_show_nccl() -> None:
    """A second call finds it in the launcher's env."""
    variables = (("NCCL_IB_HCA", "=mlx5_0"),)
    env = FabricEnv(library_variables=variables, site_variables=(("NCCL_DEBUG", "WARN"),))
    site = fabric(env=env)
    manifest = launcher("mpirun -H a,b -mca pml ob1 -mca btl tcp ./a")
    manifest["metadata"]["annotations"]["rdma.lab/fabric"] = site.name
    assert judged(manifest, decision_input(site)) == ("unsure", "MPIUnlessNccl")
