from __future__ import annotations

from typing import Any

import pytest

from webhook.decide.launchers.commands import Commands, LauncherCommand
from webhook.decide.mutations.nvlink.remap import wrapping
from webhook.errors import ShapeError
from webhook.model.pod import Path, Pod

FIRST: Path = ("spec", "containers", 0)


def running(*containers: dict[str, Any]) -> Commands:
    """Return the commands of a pod with these containers."""
    return Commands(Pod({"spec": {"containers": list(containers)}}))


def launches(
    command: list[str] | None = None, args: list[str] | None = None
) -> list[LauncherCommand]:
    """Read the launches of a pod with one container."""
    manifest = {"name": "main", "command": command, "args": args}
    return list(running(manifest).launches(FIRST))


def script(text: str) -> list[LauncherCommand]:
    """Read the launches of a script."""
    return launches(["bash", "-c", text])


def test_lists_of_words() -> None:
    """`command` and `args` are read as one list; the path is that of the launcher's word."""
    words = ("mpirun", "-np", "2", "a")
    launch = LauncherCommand(("command", 0), None, (), words)
    assert launches(["mpirun", "-np"], ["2", "a"]) == [launch]
    assert launches(["mpirun"], ["-np", "2", "a"]) == [launch]
    assert launches(None, list(words)) == [launch._replace(path=("args", 0))]
    assert launches(["env", "A=b"], list(words)) == [
        LauncherCommand(("args", 0), None, ("env", "A=b"), words)
    ]


def test_scripts_of_shells() -> None:
    """The path is the script's, and the offset is directly after the launcher's word."""
    words = ("mpirun", "a")
    launch = LauncherCommand(("command", 2), 6, (), words)
    assert launches(["sh", "-c", "mpirun a"]) == [launch]
    assert launches(["sh", "-c"], ["mpirun a", "sh"]) == [launch._replace(path=("args", 0))]
    assert launches(None, ["bash", "-ec", "mpirun a"]) == [launch._replace(path=("args", 2))]
    assert launches(["timeout", "9", "sh", "-c", "A=b mpirun a"]) == [
        LauncherCommand(("command", 4), 10, ("A=b",), words)
    ]


def test_scripts_that_hand_over() -> None:
    """A command after `exec "$@"` at a script's end is read, and so is a wrapped command."""
    words = ("mpirun", "a")
    assert launches(["sh", "-c", 'echo\nexec "$@"\n', "sh"], ["mpirun", "a"]) == [
        LauncherCommand(("args", 0), None, ("sh", "-c", 'echo\nexec "$@"\n', "sh"), words)
    ]
    assert launches(["sh", "-c", "echo", "sh"], ["mpirun", "a"]) == []
    assert len(launches(["sh", "-c", 'mpirun a\nexec "$@"', "sh"])) == 1
    (launch,) = launches([*wrapping(8), "mpirun", "a"])
    assert (launch.path, launch.words_with_runner) == (("command", 5), words)
    (launch,) = launches([*wrapping(8), "sh", "-c", "mpirun a"])
    assert (launch.path, launch.script_offset) == (("command", 7), 6)


def test_several_in_a_script() -> None:
    """Every launch is listed with its own offset."""
    assert [launch.script_offset for launch in script("mpirun a; x $(mpiexec b); orterun c")] == [
        6,
        21,
        33,
    ]


@pytest.mark.parametrize(
    "word",
    [
        *("mpirun", "mpiexec", "orterun", "prterun", "/opt/x/bin/mpirun", "mpiexec.hydra"),
        *("mpirun.real", "'mpirun'", '"$D"/bin/mpirun', "$D/mpirun", "${D}/mpirun"),
    ],
)
def test_launcher_words(word: str) -> None:
    """A launcher is recognized by the last part of its path."""
    assert len(script(f"{word} -np 2 a")) == 1


@pytest.mark.parametrize(
    "text",
    [
        *("echo mpirun a", "which mpirun", "command -v mpirun", "mpirun --version"),
        *("mpirun -h all", "$MPIRUN a", "ssh host mpirun a", "eval mpirun a", "xargs mpirun a"),
        *("goshare mpirun lmp", "bash -c 'mpirun a'", "# mpirun a", "mpirun"),
        *("$(which mpirun) a", "horovodrun -np 2 a", "torchrun mpirun.py"),
        *("mpirunner a", "kubectl exec x -- mpirun a"),
    ],
)
def test_what_launches_nothing_here(text: str) -> None:
    """Other words of a command, lookups and other programs are not launches."""
    assert script(text) == []


@pytest.mark.parametrize("front", ["sudo -u mpi", "su mpi -c", "gosu mpi env A=b", "runuser -u x"])
def test_launchers_behind_another_user(front: str) -> None:
    """Such a launcher may not see the container's environment."""
    (launch,) = launches([*front.split(), "mpirun", "a"])
    assert launch.run_by == front.split(maxsplit=1)[0]
    (launch,) = script(f"{front} 'mpirun -x A a'")
    assert launch.run_by == front.split(maxsplit=1)[0]
    assert launches([*front.split(), "ls", "mpirun.txt"]) == []


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("mpirun a\n" * 4000, "too large"),
        ("( " * 100 + "mpirun a", "too deep"),
        ("mpirun;" * 200, "too many"),
        ("mpirun a; )", "unclear"),
    ],
)
def test_scripts_that_are_not_read(text: str, problem: str) -> None:
    """Each gives one launch that is not editable and holds only the problem."""
    (launch,) = script(text)
    assert launch == LauncherCommand(("command", 2), None, (), (), problem=problem)
    assert not launch.editable


def test_lists_that_are_not_read() -> None:
    """A list of very many words is not read either, since each word is looked at several times."""
    (launch,) = launches(["mpirun", *["a"] * 10_000])
    assert launch == LauncherCommand(("command", 0), None, (), (), problem="too many")


@pytest.mark.parametrize(
    ("scripts", "read"),
    [
        ([f"mpirun a{index}" for index in range(12)], 12),
        (["mpirun a"] * 12, 12),
        (["mpirun a" + "# x\n" * 4000] * 12, 12),
        ([f"mpirun a{index} {'x' * 10_000}" for index in range(4)], 3),
        ([f"sshd {'x' * 8_000} # mpirun {index}" for index in range(4)] + ["mpirun a"], 1),
        ([f"sshd {'x' * 16_000} # {index}" for index in range(3)] + ["mpirun a" * 100], 0),
        ([f"mpirun a{index}" for index in range(200)], 128),
    ],
    ids=["many", "the same again and again", "equal ones", "long", "sshd", "sshd only", "words"],
)
def test_what_is_read_of_a_pod_is_bounded(scripts: list[str], read: int) -> None:
    """Scripts are read up to the bound; a second reading gives the same result."""
    commands = running(*({"command": ["sh", "-c", script]} for script in scripts))
    paths: list[Path] = [("spec", "containers", index) for index in range(len(scripts))]
    for path in paths:
        commands.runs_sshd(path)
    all_launches = [launch for path in paths for launch in commands.launches(path)]
    assert len([launch for launch in all_launches if launch.editable]) == read
    assert all_launches == [launch for path in paths for launch in commands.launches(path)]
    words = running({"command": ["mpirun", "a"]}, *({"command": ["sh", "-c", x]} for x in scripts))
    assert len(words.launches(FIRST)) == 1


@pytest.mark.parametrize("field", ["command", "args"])
def test_a_word_that_is_none_is_named(field: str) -> None:
    """The message has the container's path."""
    with pytest.raises(ShapeError) as raised:
        running({}, {field: ["a", 1]}).text(("spec", "containers", 1))
    assert str(raised.value).startswith(f"spec.containers[1].{field}[1] must be a string")


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
    """Only running sshd counts, not mentioning it."""
    assert running({"command": command}).runs_sshd(FIRST) is runs


@pytest.mark.parametrize(
    ("command", "mentions"),
    [
        (["/usr/sbin/sshd", "-De"], True),
        (["/entry.sh", "/bin/bash", "-c", "/usr/sbin/sshd -D"], True),
        (["bash", "-c", "mkdir -p /run/sshd && start"], True),
        (["bash", "-c", "service ssh start && sleep 1d"], True),
        (["bash", "-c", "service ssh restart"], True),
        (["tini", "--", "service", "ssh", "start", "-D"], True),
        (["bash", "-c", "/etc/init.d/ssh start; sleep 1d"], True),
        (["bash", "-c", "systemctl start sshd"], True),
        (["systemctl", "start", "ssh"], True),
        (["bash", "-c", "sleep 1d # sshd"], True),
        (["bash", "-c", "cat /etc/ssh/sshd_config; ssh host true"], False),
        (["bash", "-c", "service nginx start; systemctl start x; ssh host"], False),
        (["bash", "-c", "mysshd; dosshds"], False),
        (["sleep", "1d"], False),
        (None, False),
    ],
)
def test_sshd_as_a_word(command: list[str] | None, mentions: bool) -> None:
    """The word is enough in any place, and so is Debian's service ssh."""
    assert running({"command": command}).mentions_sshd(FIRST) is mentions


@pytest.mark.parametrize(
    ("command", "words"),
    [
        (["horovodrun", "-np", "2", "a"], [("horovodrun", "-np", "2", "a")]),
        (["bash", "-c", "x; exec /opt/deepspeed a"], [("/opt/deepspeed", "a")]),
        (["ray", "start", "--head"], [("ray", "start", "--head")]),
        (["ray", "start", "--block", "--head"], [("ray", "start", "--block", "--head")]),
        (["ray", "start", "--header"], []),
        (["ray", "--head", "start"], []),
        (["ray"], []),
        (["bash", "-c", "ray start --head; mpirun a; deepspeed b"], 2),
        (["bash", "-c", "mpirun a; deepspeed b )"], []),
        (["x", "--head"], []),
        (["bash", "-c", "mpirun a"], []),
    ],
)
def test_launchers_that_are_not_mpis(command: list[str], words: Any) -> None:
    """Their words are listed, in the order of the command; a script that is unclear has none."""
    commands = running({"command": command})
    other_launcher_commands = commands.other_launcher_commands(FIRST)
    assert commands.other_launcher_commands(FIRST) == other_launcher_commands
    assert (
        list(other_launcher_commands) if isinstance(words, list) else len(other_launcher_commands)
    ) == words


def test_text() -> None:
    """Both lists are joined, with one word on each line."""
    assert running({"command": ["a", "b"], "args": ["c d"]}).text(FIRST) == "a\nb\nc d"
    assert running({"command": None}).text(FIRST) == ""
