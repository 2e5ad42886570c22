from __future__ import annotations

import pytest

from webhook.decide.draft import Draft
from webhook.decide.launchers.commands import Commands
from webhook.decide.launchers.launches import (
    forwards_by_ssh,
    launches_accepting_flag,
    mca_parameters,
    parameters_of_launches,
)
from webhook.decide.mutations.hcoll import insert_flag
from webhook.model.pod import Path, Pod

FIRST: Path = ("spec", "containers", 0)


def running(*command: str) -> Commands:
    """Return the command of a pod with one container."""
    return Commands(Pod({"spec": {"containers": [{"command": list(command)}]}}))


@pytest.mark.parametrize(
    ("script", "refusal"),
    [
        ("sleep 1d", ""),
        ("mpirun a", "mpirun is not certain to be Open MPI"),
        ("/opt/x/mpiexec.hydra a", "mpiexec.hydra is not certain to be Open MPI"),
        ("prterun -x A a", "prterun does not accept Open MPI's parameters"),
        ("orterun --mca coll ^hcoll a", "orterun configures HCOLL itself"),
        ("orterun -mca coll ^tuned a", "orterun chooses collectives itself"),
        ("orterun a : b", "orterun has several contexts (`:`)"),
        ("orterun -tune f a", "orterun reads options from a file"),
        ("orterun $O a", "orterun has words that only the shell can expand"),
        ("export OMPI_MCA_coll_hcoll_enable=1; orterun a", "the command configures HCOLL itself"),
        (". setvars.sh; orterun a", "the container names another MPI implementation"),
        (
            "mpirun a; mpirun b; orterun a : b",
            "mpirun is not certain to be Open MPI, orterun has several contexts (`:`)",
        ),
        ("sudo orterun a", ""),
        ("orterun a\n" * 4000, ""),
    ],
)
def test_why_no_launch_takes_the_flag(script: str, refusal: str) -> None:
    """Each reason is given once; sudo and scripts that are too large are reported elsewhere."""
    assert launches_accepting_flag(running("sh", "-c", script), FIRST, ()) == ([], refusal)


def test_a_launch_that_takes_it_is_enough() -> None:
    """The result is then the launch that takes the flag, without a reason for the others."""
    (launch,), refusal = launches_accepting_flag(
        running("sh", "-c", "mpirun a; orterun b"), FIRST, ()
    )
    assert (launch.words_with_runner, refusal) == (("orterun", "b"), "")
    accepting, refusal = launches_accepting_flag(running("mpirun", "a"), FIRST, ("OMPI_MCA_btl",))
    assert (len(accepting), refusal) == (1, "")
    names = ("OMPI_MCA_btl", "I_MPI_FABRICS")
    refusal = "the container names another MPI implementation"
    assert launches_accepting_flag(running("mpirun", "a"), FIRST, names) == ([], refusal)


def test_the_flag_goes_after_the_word() -> None:
    """The flag goes into the script or the list, wherever the launcher is."""
    for command, after in (
        (("orterun", "a"), ["orterun", "-mca", "coll_hcoll_enable", "0", "a"]),
        (("sh", "-c", "orterun a"), ["sh", "-c", "orterun -mca coll_hcoll_enable 0 a"]),
    ):
        launches, _ = launches_accepting_flag(running(*command), FIRST, ())
        draft = Draft({"spec": {"containers": [{"command": list(command)}]}})
        insert_flag(draft, FIRST, launches)
        assert draft.get((*FIRST, "command")) == after


@pytest.mark.parametrize(
    ("command", "env", "forwards"),
    [
        ("mpirun -x A --host b a", {}, True),
        ("mpirun -np 2 a", {"OMPI_MCA_orte_default_hostfile": "/etc/mpi/hostfile"}, True),
        ("mpirun -mca plm_rsh_args -v a", {}, True),
        ("mpirun -x A -np 2 a", {}, False),
        ("mpirun --host b a", {}, False),
        ("mpirun -x A --host b a", {"I_MPI_FABRICS": "shm"}, False),
        ("mpirun -x A --host b a", {"OMPI_MCA_plm_rsh_agent": "/etc/mpi/kubexec.sh"}, False),
        ("sudo mpirun -x A --host b a", {}, False),
        ("sleep 1d", {}, False),
    ],
)
def test_ranks_over_ssh(command: str, env: dict[str, str], forwards: bool) -> None:
    """It must be Open MPI for sure, with hosts, and without an agent that keeps the environment."""
    assert forwards_by_ssh(running(*command.split()), FIRST, env) is forwards


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        ("sleep 1d", []),
        ("mpirun a", [None]),
        ("mpirun -mca pml ob1 a", [{"pml": "ob1"}]),
        ("orterun --mca pml ob1 --gmca btl tcp a -mca x y", [{"pml": "ob1", "btl": "tcp"}]),
        ("orterun -mca pml cm -mca pml ucx a", [{"pml": "ucx"}]),
        ("OMPI_MCA_pml=ob1 X=y mpirun a", [{"pml": "ob1"}]),
        ("OMPI_MCA_pml=ob1 mpirun -mca pml ucx a", [{"pml": "ucx"}]),
        ("orterun -mca pml $P a", [{"pml": None}]),
        ('orterun -mca pml "$P" -mca btl "`p`" a', [{"pml": None, "btl": None}]),
        ('OMPI_MCA_pml="$P" mpirun a', [{"pml": None}]),
        ("orterun -mca $P ob1 a; orterun b", [{}, {}]),
        ("sudo mpirun -mca pml ob1 a", [{"pml": "ob1"}]),
        ("mpiexec.hydra -mca pml ob1 a", [None]),
        ("orterun a; mpiexec.hydra b", [{}, None]),
        ("orterun -mca pml", [{}]),
        ("orterun -np 2 -x A=b -mca pml ob1 a", [{"pml": "ob1"}]),
        ("orterun --new 1 -mca pml ob1 a", [{}]),
        ("orterun a\n" * 4000, [None]),
    ],
)
def test_parameters_come_from_options_and_assignments(
    script: str, expected: list[dict[str, str | None] | None]
) -> None:
    """Options outweigh variables; words that may be the program's are not read.

    An expansion is known only in the container, and other launchers have no such parameters.
    """
    assert list(parameters_of_launches(running("sh", "-c", script), FIRST, {})) == expected


def test_parameters_are_inherited_from_the_container() -> None:
    """A value in env is what MPI gets, even if it looks like an expansion."""
    variables = {"OMPI_MCA_pml": "$ob1", "OMPI_MCA_btl": None, "PATH": "/bin"}
    assert mca_parameters(variables.items()) == {"pml": "$ob1", "btl": None}
    launch = running("mpirun", "-mca", "btl", "tcp", "a")
    parameters = list(parameters_of_launches(launch, FIRST, variables))
    assert parameters == [{"pml": "$ob1", "btl": "tcp"}]
