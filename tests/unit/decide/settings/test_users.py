from __future__ import annotations

import pytest

from webhook.decide.settings.users import UserChange, user_change


def change(line: str) -> UserChange | None:
    """Read a command line, split at blanks; `?` is an unknown word, `_` a blank."""
    words = [None if word == "?" else word.replace("_", " ") for word in line.split()]
    return user_change(words, 0)


@pytest.mark.parametrize(
    ("line", "user", "command"),
    [
        ("gosu 1000 a b", "1000", 2),
        ("su-exec worker:users a", "worker:users", 2),
        ("/sbin/su-exec worker a", "worker", 2),
        ("s6-setuidgid worker a", "worker", 2),
        ("gosu worker", "worker", None),
        ("runuser -u worker a", "worker", 3),
        ("runuser -u worker -- a -l", "worker", 4),
        ("runuser --user=worker a", "worker", 2),
        ("sudo -u worker a", "worker", 3),
        ("sudo -uworker a", "worker", 2),
        ("sudo -nEu worker a", "worker", 3),
        ("sudo --user worker a", "worker", 3),
        ("sudo --user=worker a", "worker", 2),
        ("sudo -u worker -- a", "worker", 4),
        ("sudo -u worker A=b C=d a", "worker", 5),
        ("sudo A=b", "root", None),
        ("sudo a", "root", 1),
        ("doas -u worker a", "worker", 3),
        ("setpriv --reuid 1000 --regid=1000 --clear-groups a", "1000", 5),
        ("setpriv --euid=1000 a", "1000", 2),
        ("setpriv --nnp a", "root", 2),
        ("setpriv --reuid=1000 --ambient-caps=+ipc_lock a", "root", 3),
        ("su worker", "worker", None),
        ("su worker -- a", "worker", None),
        ("runuser -u worker", "worker", None),
        ("setpriv --reuid 1000", "1000", None),
        ("chroot --userspec=1000:1000 / a", "1000:1000", 3),
        ("/usr/sbin/chroot --groups=1 --userspec 1000 / a", "1000", 5),
        ("chroot /host a b", "root", 2),
        ("chroot /host", "root", None),
        ("su", "root", None),
    ],
)
def test_the_user_and_the_command(line: str, user: str, command: int | None) -> None:
    """Options are read as getopt_long does."""
    read = change(line)
    assert read is not None
    assert (read.user, read.command) == (user, command)


@pytest.mark.parametrize(
    "line",
    [
        "su worker -c a_b",
        "su -c a_b worker",
        "su --command a_b worker",
        "su --command=a_b worker",
        "su -s /bin/sh worker -c a_b",
        "runuser worker -c a_b",
        "su - -lc a_b worker",
        "su worker -ca_b",
    ],
)
def test_scripts_of_su(line: str) -> None:
    """Options may follow the user; what follows `-c` is a script."""
    read = change(line)
    assert read is not None
    assert (read.user, read.script, read.command) == ("worker", "a b", None)


@pytest.mark.parametrize(
    ("line", "drops_env", "keeps"),
    [
        ("su worker -c a", False, ("",)),
        ("su -p worker -c a", False, ("",)),
        ("su - worker -c a", True, ("",)),
        ("su -l worker -c a", True, ("",)),
        ("su --login worker -c a", True, ("",)),
        ("su - -w A,B worker -c a", True, ("A", "B")),
        ("runuser -u worker a", False, ()),
        ("sudo a", True, ("",)),
        ("sudo -E a", False, ("",)),
        ("sudo --preserve-env a", False, ("",)),
        ("sudo --preserve-env=A,B a", True, ("A", "B")),
        ("sudo -Ei a", True, ("",)),
        ("doas a", True, ("",)),
        ("gosu worker a", False, ()),
        ("setpriv --reset-env a", True, ()),
        ("setpriv --reuid 1 a", False, ()),
    ],
)
def test_what_is_left_of_the_environment(
    line: str, drops_env: bool, keeps: tuple[str, ...]
) -> None:
    """A login, `sudo` without -E and --reset-env drop it."""
    read = change(line)
    assert read is not None
    assert (read.drops_env, read.keeps) == (drops_env, keeps)


@pytest.mark.parametrize(
    "line",
    [
        "torchrun a",
        "?",
        "gosu",
        "gosu -x worker a",
        "sudo --nothing a",
        "sudo -u",
        "sudo --user",
        "sudo -u ? a",
        "sudo ? a",
        "sudo -1 a",
        "su worker ?",
    ],
)
def test_unclear_words(line: str) -> None:
    """An unknown option or word may be anything; a value may be missing."""
    read = change(line)
    assert read is None or read.user is None


@pytest.mark.parametrize(
    ("user", "is_root"),
    [
        *[(user, True) for user in ("root", "0", "0:0", "root:x", ":1000")],
        *[(user, False) for user in ("1", "1:0", None)],
    ],
)
def test_root(user: str | None, is_root: bool) -> None:
    """Names and numbers, with or without a group; an unknown user may be another."""
    assert UserChange(user, "").keeps_ipc_lock is is_root
    assert not UserChange(user, "", drops_ipc_lock=True).keeps_ipc_lock


@pytest.mark.parametrize(
    ("line", "keeps"),
    [
        ("capsh --drop=cap_ipc_lock -- -c a", False),
        ("capsh --drop=cap_net_raw,cap_ipc_lock -- -c a", False),
        ("capsh --drop=CAP_IPC_LOCK --print -- -c a", False),
        ("capsh --drop=all -- -c a", False),
        ("capsh --drop=cap_net_raw -- -c a", True),
        ("capsh --print -- -c a", True),
        ("capsh --user=worker -- -c a", False),
        ("capsh --uid=1000 -- -c a", False),
        ("capsh --uid=0 -- -c a", True),
        ("capsh --keep=1 --user=worker --addamb=cap_ipc_lock -- -c a", True),
        ("setpriv --bounding-set=-ipc_lock a", False),
        ("setpriv --bounding-set -net_raw,-ipc_lock a", False),
        ("setpriv --bounding-set=-all a", False),
        ("setpriv --bounding-set=-all,+ipc_lock a", True),
        ("setpriv --bounding-set=-net_raw a", True),
        ("chroot --userspec=1000 / a", False),
        ("chroot --userspec 1000:1000 / a", False),
        ("chroot --userspec=:1000 / a", True),
        ("chroot --skip-chdir / a", True),
    ],
)
def test_whether_ipc_lock_has_an_effect(line: str, keeps: bool) -> None:
    """For root, unless it drops the capability for the programs that it runs."""
    read = user_change(line.split(), 0)
    assert read is not None
    assert read.keeps_ipc_lock is keeps


def test_scripts_of_capsh() -> None:
    """Bash gets the words after `--`."""
    for line, script in (
        ("capsh --print -- -c a_b c", "a b"),
        ("capsh --print -- -lc a_b", "a b"),
        ("capsh --print -- a_b c", None),
        ("capsh --print -- -c", None),
        ("capsh --print -- ? a", None),
        ("capsh --print", None),
    ):
        read = change(line)
        assert read is not None
        assert (read.script, read.command) == (script, None)


@pytest.mark.parametrize(
    ("line", "description"),
    [
        ("su - worker -c a", "su - worker"),
        ("su worker -c a", "su worker"),
        ("runuser -l worker -c a", "runuser - worker"),
        ("runuser -u worker a", "runuser worker"),
        ("sudo -u worker a", "sudo -u worker"),
        ("sudo a", "sudo"),
        ("gosu worker a", "gosu worker"),
        ("setpriv --reuid 5 a", "setpriv --reuid 5"),
        ("chroot --userspec=5:6 / a", "chroot --userspec 5:6"),
        ("capsh --drop=all --user=a -- -c b", "capsh --drop all"),
        ("capsh --user=a -- -c b", "capsh --user a"),
        (f"gosu {'x' * 99} a", f"gosu {'x' * 40}"),
    ],
)
def test_descriptions(line: str, description: str) -> None:
    """Messages name the program and the user."""
    read = change(line)
    assert read is not None
    assert read.description == description


def test_variables_of_sudo() -> None:
    """They precede the command."""
    read = change("sudo A=b C=d a E=f")
    assert read is not None
    assert read.assignments == ("A=b", "C=d")
