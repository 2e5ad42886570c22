from __future__ import annotations

import pytest

from tests.builders import container
from tests.unit.decide.settings.reading import certain, possible, settings_in, settings_of
from webhook.decide.settings.reader import SettingsReader
from webhook.decide.settings.setting import Setting
from webhook.model.pod import Pod

SOCKET = {"NCCL_NET": "Socket"}
DEEPEST = 8
EXPORT = "export NCCL_NET=Socket; a"


@pytest.mark.parametrize(
    ("starter", "innermost"),
    [
        (("gosu", "0"), ("env", "NCCL_NET=Socket", "a")),
        (("mpirun",), ("env", "NCCL_NET=Socket", "a")),
        (("sudo", "-E"), ("env", "NCCL_NET=Socket", "a")),
    ],
)
def test_the_deepest_command_that_is_read(
    starter: tuple[str, ...], innermost: tuple[str, ...]
) -> None:
    """Programs that start others within each other are followed to a depth, and no further."""
    assert certain(settings_of(*starter * DEEPEST, *innermost)) == SOCKET
    assert certain(settings_of(*starter * (DEEPEST + 1), *innermost)) == {}


@pytest.mark.parametrize("shell", [("sh", "-c"), ("su", "root", "-c")])
def test_the_deepest_script_that_is_read(shell: tuple[str, ...]) -> None:
    """A script within other programs is one level deeper than its shell."""
    words = (*shell, EXPORT)
    assert certain(settings_of(*("gosu", "0") * (DEEPEST - 1), *words)) == SOCKET
    assert certain(settings_of(*("gosu", "0") * DEEPEST, *words)) == {}


def test_too_deep_programs_may_carry_traffic() -> None:
    """Nobody knows what runs there, so what their starters do is not discarded."""
    script = f"gosu worker {'gosu 0 ' * DEEPEST} a"
    assert settings_in(script).user == ("gosu worker in its command", True)


@pytest.mark.parametrize("script", [f'{EXPORT[:-1]}exec "$@"\n', f' {EXPORT[:-1]}exec "$@"'])
def test_a_script_that_hands_over(script: str) -> None:
    """After `exec "$@"`, also with a line end, the words after the script's name run."""
    settings = settings_of("sh", "-c", script, "sh", "gosu", "worker", "torchrun")
    assert certain(settings) == SOCKET
    assert settings.user == ("gosu worker in its command", True)


@pytest.mark.parametrize("words", [("env", "NCCL_NET=Socket"), ("env", "-u", "NCCL_NET", "-x")])
def test_words_without_a_program(words: tuple[str, ...]) -> None:
    """They start nothing that could be followed."""
    assert settings_of(*words).user is None


def test_settings_without_a_source_of_other_changes() -> None:
    """A setting alone drops no environment."""
    assert settings_in(EXPORT).env_dropped_by == ""


def test_a_launch_of_several_programs() -> None:
    """Only some ranks get an option's variable; all get what is before the launcher."""
    settings = settings_in("NCCL_NET=Socket mpirun -x UCX_TLS=rc a : b")
    assert certain(settings) == SOCKET
    assert settings.possible == (Setting("UCX_TLS", "rc", "mpirun -x in its command"),)


def test_a_default_of_a_launch() -> None:
    """In `-x A=${A:-b}`, the value that the launcher has already wins."""
    script = "export NCCL_NET=IB; mpirun -x NCCL_NET=${NCCL_NET:-Socket} a"
    assert certain(settings_in(script)) == {"NCCL_NET": "IB"}


def test_several_settings_of_branches() -> None:
    """Each is kept, with what sets it."""
    branch = "export NCCL_NET=Socket; UCX_TLS=tcp a"
    settings = settings_in(f"if x; then {branch}; unset NCCL_IB_HCA; fi; torchrun a")
    assert [(setting.name, setting.source) for setting in settings.possible] == [
        ("NCCL_NET", "export in its command"),
        ("NCCL_IB_HCA", "unset in its command"),
        ("UCX_TLS", "assignment in its command"),
    ]


def test_variables_of_the_shell_before_the_last_command() -> None:
    """They are none of the environment, whatever that command gets."""
    settings = settings_in("NCCL_NET=Socket; UCX_TLS=rc torchrun a")
    assert (certain(settings), possible(settings)) == ({"UCX_TLS": "rc"}, {})


def test_containers_that_share_a_long_script() -> None:
    """Each command of it counts once for each container."""
    member = container(command=["sh", "-c", "export NCCL_NET=Socket\n" * 1000 + "torchrun a"])
    reader = SettingsReader(Pod({"spec": {"containers": [member] * 3}}))
    members = [reader.settings(("spec", "containers", index)) for index in range(3)]
    assert [certain(settings) for settings in members] == [SOCKET] * 3
