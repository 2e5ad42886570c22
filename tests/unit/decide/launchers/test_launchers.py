"""The table of launchers is their only list."""

from __future__ import annotations

import pytest

from tests.builders import container, pod
from webhook.decide.launchers import commands
from webhook.decide.launchers.commands import Commands
from webhook.decide.launchers.openmpi import check_open_mpi
from webhook.model.pod import Pod

FIRST = ("spec", "containers", 0)


@pytest.mark.parametrize("word", commands.MPI_BY_LAUNCHER)
@pytest.mark.parametrize("command", [["{} -np 2 a"], ["{}", "-np", "2", "a"]], ids=["sh", "list"])
def test_every_word_of_the_table_is_a_launcher(word: str, command: list[str]) -> None:
    """Each is recognized in a list of words and in a script, without any other table."""
    words = [template.format(word) for template in command]
    words = ["sh", "-c", *words] if len(words) == 1 else words
    (launch,) = Commands(Pod(pod(container(command=words)))).launches(FIRST)
    assert launch.words_with_runner[0] == word


@pytest.mark.parametrize("word", commands.MPI_BY_LAUNCHER)
def test_a_word_proves_what_its_family_is(word: str) -> None:
    """Open MPI's own words are evidence; a word of another MPI overrides all evidence."""
    implementation = commands.MPI_BY_LAUNCHER[word]
    assert bool(check_open_mpi((), (word, "a"), ()).evidence) == (implementation == "Open MPI")
    assert bool(check_open_mpi((), (word, "-x", "A", "a"), ()).evidence) == (
        implementation != "another MPI"
    )


def test_every_word_holds_a_stem() -> None:
    """A text without a stem is not searched for launchers."""
    assert all(map(commands.may_launch, commands.MPI_BY_LAUNCHER))
    assert not commands.may_launch("torchrun --nproc-per-node 8 train.py")
    assert set(commands.LAUNCHER_TERMS) == {"mpirun", "mpiexec", "orterun", "prterun"}
