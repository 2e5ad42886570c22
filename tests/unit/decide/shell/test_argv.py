from __future__ import annotations

import pytest

from webhook.decide.shell.argv import basename, command_at, script_at


@pytest.mark.parametrize(
    "front",
    [
        "",
        "A=b C=d",
        "env",
        "env -i -u HOME --chdir=/ -C / A=b",
        "exec -a name",
        "/usr/bin/time -v -o log",
        "timeout 60",
        "timeout -k5 -s KILL --preserve-status 1h",
        "nohup",
        "numactl --membind=0 -N 0 -l --",
        "nice -n 5",
        "nice -n5",
        "ionice -c2 -n 7",
        "stdbuf -o0 -eL",
        "setsid -w",
        "taskset -ac 0-3",
        "command -p",
        "builtin command",
        "tini -gv --",
        "dumb-init --single-child",
        "busybox timeout 5",
        "env A=b timeout 60 nice -n 1 exec",
    ],
)
def test_wrappers_are_looked_through(front: str) -> None:
    """The command is the first word after wrappers, their options, operands and assignments."""
    words = [*front.split(), "mpirun", "-np", "2"]
    assert command_at(words) == len(front.split())


@pytest.mark.parametrize(
    "words",
    [
        "command -v mpirun",
        "env -S mpirun",
        "timeout --unknown 5 mpirun",
        "nice -5 mpirun",
        "nohup",
        "A=b",
        "timeout 60",
    ],
)
def test_options_not_known_end_what_is_known(words: str) -> None:
    """The word after an unknown option may be its value; a lookup runs nothing."""
    assert command_at(words.split()) is None


def test_words_not_known_end_what_is_known() -> None:
    """A word that may expand to any number of words hides the command, except as an operand."""
    assert command_at([None, "mpirun"]) is None
    assert command_at(["env", None, "mpirun"]) is None
    assert command_at(["timeout", None, "mpirun"]) is None
    assert command_at(["timeout", "$T", "mpirun"]) == 2


def test_other_programs_are_commands() -> None:
    """A program that is not a wrapper is the command, including sudo and echo."""
    assert command_at(["sudo", "mpirun"]) == 0
    assert command_at(["nohup", "echo", "mpirun"]) == 1
    assert command_at(["x", "mpirun"], 1) == 1


@pytest.mark.parametrize(
    ("words", "at"),
    [
        ("sh -c SCRIPT", 2),
        ("/bin/bash -lc SCRIPT name", 2),
        ("bash -ec SCRIPT", 2),
        ("bash -euxo pipefail -c SCRIPT", 4),
        ("bash -ceuo pipefail SCRIPT", 3),
        ("bash -c -l SCRIPT", 3),
        ("bash --norc --rcfile f -O extglob +e -c -- SCRIPT", 9),
        ("dash -c - SCRIPT", 3),
        ("ash -c", None),
        ("bash run.sh -c SCRIPT", None),
        ("bash -x", None),
        ("python -c SCRIPT", None),
    ],
)
def test_the_script_of_a_shell(words: str, at: int | None) -> None:
    """The script is the first word after the options, if -c is one of them."""
    assert script_at(words.split(), 0) == at


def test_the_script_of_a_shell_with_unknown_options() -> None:
    """An option that only the shell can expand hides the script."""
    assert script_at(["bash", None, "-c", "x"], 0) is None
    assert script_at([None, "-c", "x"], 0) is None


def test_a_command_is_known_by_its_last_part() -> None:
    """A path counts as the program that it names."""
    assert [basename(word) for word in ("/opt/x/mpirun", "mpirun", "x/")] == [
        "mpirun",
        "mpirun",
        "",
    ]
