from __future__ import annotations

import pytest

from tests.unit.decide.settings.reading import certain, possible, settings_in

SOCKET = {"NCCL_NET": "Socket"}


@pytest.mark.parametrize(
    "script",
    [
        'echo "$NCCL_DEBUG"; export NCCL_NET=Socket; torchrun a',
        "NCCL_NET=Socket exec torchrun a; export NCCL_NET=IB",
        "NCCL_NET=Socket exec torchrun a; NCCL_NET=IB exec torchrun b",
    ],
)
def test_commands_run_in_order(script: str) -> None:
    """A command that sets nothing ends nothing; after `exec` of a program, nothing runs."""
    settings = settings_in(script)
    assert (certain(settings), possible(settings)) == (SOCKET, {})


def test_variables_of_several_minor_commands() -> None:
    """They reach nothing that carries traffic."""
    settings = settings_in("NCCL_NET=Socket echo a; UCX_TLS=tcp echo b; torchrun c")
    assert possible(settings) == {}


@pytest.mark.parametrize("starter", ["exec", "exec -a name", "taskset -c 0-3", "ionice -c 2"])
def test_what_keeps_the_environment(starter: str) -> None:
    """Only the option -c of `exec` clears it."""
    settings = settings_in(f"export NCCL_NET=Socket; {starter} torchrun a")
    assert (certain(settings), settings.env_dropped_by) == (SOCKET, "")
