from __future__ import annotations

from typing import Any

import pytest

from webhook.core.commands import (
    Launch,
    env_names,
    forwards_by_ssh,
    launches_of,
    mentions,
    runs_sshd,
    text_of,
)
from webhook.core.remap import wrapping


def launches(command: list[str] | None = None, args: list[str] | None = None) -> list[Launch]:
    """Read the launches of a pod's one container."""
    manifest = {"name": "main", "command": command, "args": args}
    return list(launches_of({"spec": {"containers": [manifest]}}, manifest))


def script(text: str) -> list[Launch]:
    """Read the launches of a script."""
    return launches(["bash", "-c", text])


def test_lists_of_words() -> None:
    """Both lists are one; the launcher's own place is told."""
    words = ("mpirun", "-np", "2", "a")
    launch = Launch(("command", 0), None, (), words)
    assert launches(["mpirun", "-np"], ["2", "a"]) == [launch]
    assert launches(["mpirun"], ["-np", "2", "a"]) == [launch]
    assert launches(None, list(words)) == [launch._replace(path=("args", 0))]
    assert launches(["env", "A=b"], list(words)) == [
        Launch(("args", 0), None, ("env", "A=b"), words)
    ]


def test_scripts_of_shells() -> None:
    """The script's place is told, with the offset behind the launcher's word."""
    words = ("mpirun", "a")
    launch = Launch(("command", 2), 6, (), words)
    assert launches(["sh", "-c", "mpirun a"]) == [launch]
    assert launches(["sh", "-c"], ["mpirun a", "sh"]) == [launch._replace(path=("args", 0))]
    assert launches(None, ["bash", "-ec", "mpirun a"]) == [launch._replace(path=("args", 2))]
    assert launches(["timeout", "9", "sh", "-c", "A=b mpirun a"]) == [
        Launch(("command", 4), 10, ("A=b",), words)
    ]


def test_scripts_that_hand_over() -> None:
    """What a script runs at its end with `exec "$@"` is read too, and so is what we wrapped."""
    words = ("mpirun", "a")
    assert launches(["sh", "-c", 'echo\nexec "$@"\n', "sh"], ["mpirun", "a"]) == [
        Launch(("args", 0), None, ("sh", "-c", 'echo\nexec "$@"\n', "sh"), words)
    ]
    assert launches(["sh", "-c", "echo", "sh"], ["mpirun", "a"]) == []
    assert len(launches(["sh", "-c", 'mpirun a\nexec "$@"', "sh"])) == 1
    (launch,) = launches([*wrapping(8), "mpirun", "a"])
    assert (launch.path, launch.words) == (("command", 5), words)
    (launch,) = launches([*wrapping(8), "sh", "-c", "mpirun a"])
    assert (launch.path, launch.end) == (("command", 7), 6)


def test_several_in_one_script() -> None:
    """Every launch counts, each with its own offset."""
    assert [launch.end for launch in script("mpirun a; x $(mpiexec b); orterun c")] == [6, 21, 33]


@pytest.mark.parametrize(
    "word",
    [
        *("mpirun", "mpiexec", "orterun", "prterun", "/opt/x/bin/mpirun", "mpiexec.hydra"),
        *("mpirun.real", "'mpirun'", '"$D"/bin/mpirun', "$D/mpirun", "${D}/mpirun"),
    ],
)
def test_launcher_words(word: str) -> None:
    """A launcher is known by the last part of its path."""
    assert len(script(f"{word} -np 2 a")) == 1


@pytest.mark.parametrize(
    "text",
    [
        *("echo mpirun a", "which mpirun", "command -v mpirun", "mpirun --version"),
        *("mpirun -h all", "$MPIRUN a", "ssh host mpirun a", "eval mpirun a", "xargs mpirun a"),
        *("goshare mpirun lmp", "bash -c 'mpirun a'", "# mpirun a", "mpirun"),
        *("$(which mpirun) a", "horovodrun -np 2 a", "mpirun a; )", "torchrun mpirun.py"),
        *("mpirunner a", "kubectl exec x -- mpirun a"),
    ],
)
def test_what_launches_nothing_here(text: str) -> None:
    """Words not in command position, questions and other programs are no launches."""
    assert script(text) == []


@pytest.mark.parametrize("front", ["sudo -u mpi", "su mpi -c", "gosu mpi env A=b", "runuser -u x"])
def test_launchers_behind_another_user(front: str) -> None:
    """It launches, but may not see the container's environment."""
    (launch,) = launches([*front.split(), "mpirun", "a"])
    assert launch.behind == front.split(maxsplit=1)[0]
    (launch,) = script(f"{front} 'mpirun -x A a'")
    assert launch.behind == front.split(maxsplit=1)[0]
    assert launches([*front.split(), "ls", "mpirun.txt"]) == []


def test_scripts_too_large() -> None:
    """Limits hold for a script and for all launching scripts of a pod."""
    assert script("mpirun a\n" * 4000) == [Launch(("command", 2), None, (), (), "too large")]
    manifest = {"command": ["sh", "-c", "mpirun a"]}
    few, many = ({"spec": {"containers": [manifest] * count}} for count in (8, 9))
    assert len(launches_of(few, manifest)) == 1
    assert launches_of(many, manifest) == (Launch(("command",), None, (), (), "too large"),)


@pytest.mark.parametrize(
    ("command", "runs"),
    [
        (["/usr/sbin/sshd", "-De"], True),
        (["bash", "-c", "mkdir -p /run/sshd && /usr/sbin/sshd -D"], True),
        (["bash", "-c", "exec /usr/sbin/sshd -D -e"], True),
        (["bash", "-c", "echo sshd; cat /etc/ssh/sshd_config"], False),
        (["bash", "-c", "sleep 1d # sshd"], False),
        (["bash", "-c", "sshd\n" * 7000], False),
        (["sleep", "1d"], False),
        (None, False),
    ],
)
def test_sshd_as_a_command(command: list[str] | None, runs: bool) -> None:
    """It counts where it runs, not where it is named."""
    assert runs_sshd({"command": command}) is runs


def test_text() -> None:
    """Mentions are looked for in both lists."""
    manifest = {"command": ["a", "b"], "args": ["c d"]}
    assert text_of(manifest) == "a\nb\nc d"
    assert mentions(manifest, "c")
    assert not mentions(manifest, "e")


def test_names_of_variables() -> None:
    """Only names are read; what has none is the API server's to refuse."""
    assert env_names({"env": [{"name": "A"}, {"name": 1}, {}]}) == {"A"}


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
    """Open MPI for sure, with hosts of its own, and no agent that keeps the environment."""
    listed: list[Any] = [{"name": name, "value": value} for name, value in env.items()]
    assert forwards_by_ssh({"command": command.split(), "env": listed}) is forwards
