from __future__ import annotations

import pytest

from webhook.decide.settings.launch_options import Export, rank_variables, srun_export


def variables(line: str) -> list[tuple[str, str | None, str]]:
    """Read a command line, split at blanks; `?` is an unknown word."""
    return list(rank_variables(words(line)).variables)


def words(line: str) -> list[str | None]:
    """Split a line."""
    return [None if word == "?" else word for word in line.split()]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("mpirun -x A=1 a", [("A", "1", "mpirun -x")]),
        ("/opt/mpirun --x A=1 a", [("A", "1", "mpirun --x")]),
        ("mpirun -x A=1,B=2 a", [("A", "1,B=2", "mpirun -x")]),
        ("mpirun -x A=1 -x A=2 a", [("A", "1", "mpirun -x"), ("A", "2", "mpirun -x")]),
        ("mpirun -x A -np 2 a", []),
        ("mpirun -np 2 -H a,b -mca pml ob1 a", [("OMPI_MCA_pml", "ob1", "mpirun -mca")]),
        ("mpirun --mca pml ? a", [("OMPI_MCA_pml", None, "mpirun --mca")]),
        ("mpirun --mca mca_base_env_list A=1;B=2 a", [("A", "1", "mpirun --mca")] * 1
         + [("B", "2", "mpirun --mca")]),
        ("mpirun --mca mca_base_env_list ? a", []),
        ("mpirun --mca pml", []),
        ("mpirun -x", []),
        ("mpiexec -genv A 1 a", [("A", "1", "mpiexec -genv")]),
        ("mpiexec --genv A=1 a", [("A", "1", "mpiexec --genv")]),
        ("mpiexec -genv A ? a", [("A", None, "mpiexec -genv")]),
        ("mpiexec -genv A", []),
        ("mpiexec -env A 2 -genv A 1 a", [("A", "1", "mpiexec -genv"), ("A", "2", "mpiexec -env")]),
        (f"mpirun {'-' * 99}x A=1 a", [("A", "1", f"mpirun {'-' * 20}")]),
        ("mpirun a -x A=1", []),
        ("mpirun ? -x A=1", []),
        ("mpirun --unclear b -x A=1", []),
        ("mpirun --unclear -x A=1 b", [("A", "1", "mpirun -x")]),
        ("mpirun -x A=1 --unclear b", [("A", "1", "mpirun -x")]),
    ],
)  # fmt: skip
def test_variables_of_ranks(line: str, expected: list[tuple[str, str | None, str]]) -> None:
    """The decisive setting comes last; words after the program are the program's."""
    assert variables(line) == expected


@pytest.mark.parametrize(
    ("line", "forwarded"),
    [
        ("mpirun -x A -np 2 -x B=1 -x C a -x D", ("A", "C")),
        ("mpirun -x ? a", ()),
        ("mpirun -x", ()),
        ("mpiexec -genvlist A,B -n 2 -envlist C -genv D 1 a", ("A", "B", "C")),
        ("mpiexec -genvlist", ()),
    ],
)
def test_forwarded_variables(line: str, forwarded: tuple[str, ...]) -> None:
    """An option may name variables of the launcher; other values are none."""
    assert rank_variables(words(line)).forwarded == forwarded


@pytest.mark.parametrize(
    ("line", "program"),
    [
        ("mpirun a b", 1),
        ("mpirun -np 2 -x A=1 a b", 5),
        ("mpirun --allow-run-as-root a", 2),
        ("mpiexec -genv A=1 a", 3),
        ("mpiexec -genv A 1 a", 4),
        ("mpirun -np 2", None),
        ("mpirun --unclear b c", None),
        ("mpirun ? c", None),
    ],
)
def test_the_program(line: str, program: int | None) -> None:
    """It is the first word that is neither an option nor a value."""
    assert rank_variables(words(line)).program == program


@pytest.mark.parametrize(
    ("line", "export"),
    [
        ("srun", Export((), drops_env=False)),
        ("srun a", Export((), drops_env=False)),
        ("srun --export=ALL a", Export((), drops_env=False)),
        ("srun --export=NONE a", Export((), drops_env=True)),
        ("srun --export NONE a", Export((), drops_env=True)),
        ("srun --export ALL,A=1 a", Export((("A", "1"),), drops_env=False)),
        ("srun -N 2 --export=ALL,A=1,B=2 a", Export((("A", "1"), ("B", "2")), drops_env=False)),
        ("srun --export=A=1 a", Export((("A", "1"),), drops_env=True)),
        ("srun --export ?", Export((), drops_env=True)),
        ("srun ? --export", Export((), drops_env=True)),
    ],
)
def test_srun(line: str, export: Export) -> None:
    """Without ALL, tasks get nothing else of the environment."""
    assert srun_export(words(line)) == export
