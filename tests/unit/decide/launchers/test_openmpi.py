from __future__ import annotations

import pytest

from webhook.decide.launchers.openmpi import (
    OpenMpiCheck,
    check_open_mpi,
    reaches_by_ssh,
    shows_intel_mpi,
    shows_other_mpi,
)
from webhook.decide.shell.argv import Word


def judged(line: str, *env: str, front: tuple[Word, ...] = ()) -> OpenMpiCheck:
    """Judge a command line, split at blanks; `?` is an unknown word."""
    words = [None if word == "?" else word for word in line.split()]
    return OpenMpiCheck() if shows_other_mpi(line, env) else check_open_mpi(front, words, env)


@pytest.mark.parametrize(
    ("line", "evidence"),
    [
        ("mpirun --allow-run-as-root a", "-allow-run-as-root"),
        ("mpirun -np 2 -x A a", "-x"),
        ("mpirun -H a,b --mca pml ob1 a", "-mca"),
        ("mpirun --report-bindings -mca btl ^openib a", "-mca"),
        ("mpirun --not-known -x A a", "-x"),
        ("mpirun --display=map -x A a", "-x"),
        ("mpirun -x coll --not-known a", "-x"),
        ("orterun a", "orterun"),
        ("mpirun.openmpi a", "mpirun.openmpi"),
        ("/opt/amazon/openmpi/bin/mpirun a", "/opt/amazon/openmpi/bin/mpirun"),
        ("/opt/hpcx-v2/ompi/bin/mpirun a", "/opt/hpcx-v2/ompi/bin/mpirun"),
        ("$H/openmpi-4/bin/mpirun a", "$H/openmpi-4/bin/mpirun"),
    ],
)
def test_evidence(line: str, evidence: str) -> None:
    """The launcher's name or path, or an option that only Open MPI's launchers take, proves it."""
    assert judged(line) == OpenMpiCheck(evidence)


def test_evidence_in_the_environment() -> None:
    """An OMPI_MCA_* variable of the container or the command is evidence, except our own."""
    assert judged("mpirun a", "PATH", "OMPI_MCA_btl") == OpenMpiCheck("OMPI_MCA_btl")
    assert judged("mpirun a", front=("env", None, "OMPI_MCA_pml=ucx")) == OpenMpiCheck(
        "OMPI_MCA_pml"
    )
    assert judged("mpirun a", "OMPI_MCA_coll_hcoll_enable") == OpenMpiCheck()


def test_evidence_that_root_may_run_it() -> None:
    """OMPI_ALLOW_RUN_AS_ROOT is evidence, in the container's variables and before the launcher."""
    name = "OMPI_ALLOW_RUN_AS_ROOT"
    assert judged("mpirun a", name) == OpenMpiCheck(name)
    assert judged("mpirun a", front=(f"{name}=1",)) == OpenMpiCheck(name)


OPERATOR = (
    *("OMPI_MCA_plm_rsh_agent", "OMPI_MCA_orte_default_hostfile"),
    *("I_MPI_HYDRA_BOOTSTRAP", "I_MPI_HYDRA_BOOTSTRAP_EXEC"),
)


@pytest.mark.parametrize(
    ("line", "env", "evidence"),
    [
        ("mpirun a", "", ""),
        ("mpirun --allow-run-as-root a", "", "-allow-run-as-root"),
        ("mpirun -mca btl ^openib a", "", "-mca"),
        ("mpirun a", "OMPI_ALLOW_RUN_AS_ROOT", "OMPI_ALLOW_RUN_AS_ROOT"),
        ("mpirun a", "OMPI_MCA_btl", "OMPI_MCA_btl"),
        ("mpirun -mca btl ^openib a", "I_MPI_FABRICS", ""),
    ],
)
def test_variables_of_the_training_operator(line: str, env: str, evidence: str) -> None:
    """What it sets for Open MPI and Intel MPI at once shows neither; anything else still does."""
    variables = (*OPERATOR, *env.split())
    assert judged(line, *variables) == OpenMpiCheck(evidence)


@pytest.mark.parametrize("name", OPERATOR[2:])
def test_bootstrap_of_intel_mpi_without_the_operator(name: str) -> None:
    """Without the operator's agent for Open MPI, either variable is a sign of Intel MPI."""
    assert judged("mpirun -mca btl ^openib a", name) == OpenMpiCheck()


@pytest.mark.parametrize(
    "line",
    [
        "mpirun -np 2 a",
        "mpirun -np 2 a -x A",
        "mpirun -np 2 a --mca b c",
        "mpirun --not-known value -x A a",
        "mpirun ? -x A a",
        "$openmpi/bin/mpirun a",
        "mpirun -wdir /opt/openmpi a",
    ],
)
def test_no_evidence(line: str) -> None:
    """Options count only if they are surely the launcher's, and paths only in its own word."""
    assert judged(line) == OpenMpiCheck()


@pytest.mark.parametrize(
    ("line", "env"),
    [
        ("mpirun -x A a", "I_MPI_FABRICS"),
        ("mpirun -x A a", "HYDRA_HOST_FILE"),
        ("mpirun -x I_MPI_DEBUG=5 a", ""),
        ("mpirun -genv A b -x A a", ""),
        ("mpirun -x A -ppn 4 a", ""),
        ("/usr/lib/mpich/bin/mpirun -x A a", ""),
        ("mpiexec.hydra -x A a", ""),
        ("mpirun -x A -hosts a,b a", ""),
    ],
)
def test_signs_of_another_mpi(line: str, env: str) -> None:
    """Any sign of MPICH or Intel MPI overrides evidence."""
    assert judged(line, *env.split(), "OMPI_MCA_btl") == OpenMpiCheck()


@pytest.mark.parametrize(
    ("line", "obstacle"),
    [
        ("mpirun -x A -mca coll_hcoll_enable 1 a", "configures HCOLL itself"),
        ("mpirun -x A --mca coll ^hcoll a", "configures HCOLL itself"),
        ("mpirun -x OMPI_MCA_coll_hcoll_enable=1 a", "configures HCOLL itself"),
        ("mpirun -x A --mca coll basic,libnbc a", "chooses collectives itself"),
        ("mpirun -x A --mca $NAME 1 a", "chooses collectives itself"),
        ("mpirun -x A --mca ? 1 a", "chooses collectives itself"),
        ("mpirun -x A -np 1 a : -np 2 b", "has several contexts (`:`)"),
        ("mpirun -x A --app file", "reads options from a file"),
        ("mpirun -x A -am file a", "reads options from a file"),
        ("mpirun -x A --not-known value -tune file a", "reads options from a file"),
        ("mpirun -x A ? a", "has words that only the shell can expand"),
        ("mpirun -x A $P ?", "has words that only the shell can expand"),
        (
            "mpirun -x A --not-known value --mca coll basic a",
            "has words that only the shell can expand",
        ),
        ("prterun --mca a b -x A a", "does not accept Open MPI's parameters"),
    ],
)
def test_obstacles(line: str, obstacle: str) -> None:
    """A command line that settles hcoll, or might, is not changed."""
    assert judged(line).obstacle == obstacle


@pytest.mark.parametrize(
    "line",
    [
        "mpirun -x A -np ? a ?",
        "mpirun -x A --host ? a --tune x --app y",
        "mpirun -x A $B/prog ?",
        "mpirun -x A $P b",
        "mpirun -x A -np",
        "mpirun -x A --mca pml ob1 python train.py --mca coll",
    ],
)
def test_no_obstacle(line: str) -> None:
    """Values of options may be unknown, and the program's own words are not read."""
    assert judged(line) == OpenMpiCheck("-x")


def test_ranks_on_other_machines() -> None:
    """Hosts in options or in the environment mean ssh, unless another agent is set."""
    assert reaches_by_ssh(["mpirun", "-H", "a", "b"], ())
    assert reaches_by_ssh(["mpirun", "b"], ("OMPI_MCA_plm_rsh_args",))
    assert not reaches_by_ssh(["mpirun", "b"], ())
    assert not reaches_by_ssh(["mpirun", "-H", "a", "b"], ("OMPI_MCA_plm_rsh_agent",))
    assert not reaches_by_ssh(["mpirun", "-H", "a", "-mca", "plm_rsh_agent", "x", "b"], ())


@pytest.mark.parametrize(
    ("text", "env", "expected"),
    [
        ("mpirun a", (), False),
        ("mpirun a", ("I_MPI_DEBUG",), True),
        ("mpirun -genv I_MPI_DEBUG 5 a", (), True),
        (". /opt/intel/a.sh", (), True),
        (". setvars.sh", (), True),
        (". mpivars.sh", (), True),
        ("mpiexec.mpich a", ("HYDRA_HOST_FILE",), False),
        ("mpirun a", ("I_MPI_HYDRA_BOOTSTRAP",), True),
        ("mpirun a", ("I_MPI_HYDRA_BOOTSTRAP", "OMPI_MCA_plm_rsh_agent"), False),
    ],
)
def test_signs_of_intel_mpi(text: str, env: tuple[str, ...], *, expected: bool) -> None:
    """The training-operator sets variables of both MPIs, which are signs of neither."""
    assert shows_intel_mpi(text, env) is expected
