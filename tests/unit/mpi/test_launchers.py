"""The one table of launchers."""

from __future__ import annotations

import pytest

from tests.builders import container, pod
from webhook.mpi import launchers
from webhook.mpi.commands import Commands
from webhook.mpi.openmpi import judge

FIRST = ("spec", "containers", 0)


@pytest.mark.parametrize("word", launchers.FAMILIES)
@pytest.mark.parametrize("command", [["{} -np 2 a"], ["{}", "-np", "2", "a"]], ids=["sh", "list"])
def test_every_word_of_the_table_is_a_launcher(word: str, command: list[str]) -> None:
    """In a list of words and in a script: nothing else has to know of it."""
    words = [one.format(word) for one in command]
    words = ["sh", "-c", *words] if len(words) == 1 else words
    (launch,) = Commands(pod(container(command=words))).launches(FIRST)
    assert launch.words[0] == word


@pytest.mark.parametrize("word", launchers.FAMILIES)
def test_a_word_proves_what_its_family_is(word: str) -> None:
    """Open MPI's own words are a proof; those of another MPI outweigh every other one."""
    family = launchers.FAMILIES[word]
    assert bool(judge((), (word, "a"), ()).proof) == (family == "Open MPI")
    assert bool(judge((), (word, "-x", "A", "a"), ()).proof) == (family != "another MPI")


def test_every_word_holds_a_stem() -> None:
    """Else a text that holds it would not be looked into."""
    assert all(map(launchers.may_launch, launchers.FAMILIES))
    assert not launchers.may_launch("torchrun --nproc-per-node 8 train.py")
    assert set(launchers.STEMS) == {"mpirun", "mpiexec", "orterun", "prterun"}
