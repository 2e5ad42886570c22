from __future__ import annotations

from typing import Any

import pytest

from tests.builders import container, env
from tests.unit.decide.settings.reading import certain, possible
from webhook.decide.settings.ranks import overridden_by, settings_of_launchers
from webhook.decide.settings.setting import NO_SETTINGS, CommandSettings, Setting

LAUNCHER = {"training.kubeflow.org/job-role": "launcher"}
SOCKET = {"NCCL_NET": "Socket"}


def launcher(*words: str, **variables: str) -> dict[str, Any]:
    """Make the pod of a launcher."""
    member = container(command=list(words), env=env(**variables))
    return {"metadata": {"labels": LAUNCHER}, "spec": {"containers": [member]}}


def set_by(script: str, **variables: str) -> CommandSettings:
    """Return what a launcher that runs a script sets for ranks in other pods."""
    return settings_of_launchers([launcher("sh", "-c", script, **variables), {}])


@pytest.mark.parametrize(
    "script",
    [
        "mpirun -np 16 -x NCCL_NET=Socket a",
        "export NCCL_NET=Socket; mpirun -np 16 -x NCCL_NET a",
        "mpirun -np 16 bash -c 'export NCCL_NET=Socket; a'",
        "mpirun -np 16 -x NCCL_NET=IB env NCCL_NET=Socket a",
        "mpiexec.hydra -genv NCCL_NET Socket a",
        "export NCCL_NET=Socket; mpiexec.hydra -n 16 a",
        "export NCCL_NET=Socket; mpiexec -genvlist NCCL_NET -n 16 a",
        "export NCCL_NET=Socket; . /opt/intel/setvars.sh; mpirun -n 16 a",
        "export NCCL_NET=Socket; horovodrun -np 16 -H a:8,b:8 python c",
        "export NCCL_NET=Socket; deepspeed a",
    ],
)
def test_what_ranks_in_other_pods_get(script: str) -> None:
    """`-x` and Hydra's options; launchers that pass on their own environment."""
    settings = set_by(script)
    assert certain(settings) == SOCKET
    assert settings.certain["NCCL_NET"].source.endswith(" in the launcher's command")


@pytest.mark.parametrize(
    "script",
    [
        "export NCCL_NET=Socket; mpirun -np 16 a",
        "export NCCL_NET=Socket; mpirun -np 16 -x UCX_TLS=rc a",
        "unset NCCL_NET; mpirun -np 16 -x NCCL_NET a",
        "mpirun -np 16 -x NCCL_NET a",
        "mpirun -np 16 -x PATH a",
        "export NCCL_NET=Socket; ray start --head",
        "mpirun -np 16 a",
        "export NCCL_NET=Socket; python a",
    ],
)
def test_what_does_not_reach_them(script: str) -> None:
    """Open MPI over ssh forwards what `-x` names; Ray forwards nothing."""
    assert "NCCL_NET" not in certain(set_by(script))


def test_the_launchers_own_variables() -> None:
    """`-x NAME` forwards a variable of the container, too."""
    assert certain(set_by("mpirun -x NCCL_NET a", NCCL_NET="Socket")) == SOCKET
    assert certain(set_by("mpirun -x A -x NCCL_NET a", A="b")) == {}


def test_possible_settings_of_launchers() -> None:
    """A launch in a branch, and one of several."""
    assert possible(set_by("if [ $X ]; then mpirun -x NCCL_NET=Socket a; fi")) == SOCKET
    settings = set_by("mpirun -x NCCL_NET=Socket a; mpirun -x UCX_TLS=rc b")
    assert (certain(settings), possible(settings)) == ({"UCX_TLS": "rc"}, SOCKET)


def test_possible_settings_of_launchers_that_pass_on_theirs() -> None:
    """Hydra's ranks get a variable of a branch, if the launcher has it."""
    script = "if [ $X ]; then export NCCL_NET=Socket; fi; mpiexec.hydra -n 16 a"
    assert possible(set_by(script)) == SOCKET


def test_several_launchers() -> None:
    """Their settings are taken together; a pod that cannot be read hides none of the others'."""
    unreadable = {"metadata": {"labels": LAUNCHER}, "spec": {"containers": [{"command": "x"}]}}
    branches = [
        launcher("sh", "-c", f"if a; then mpirun -x {setting} b; fi; mpirun -x {devices} c")
        for setting, devices in [
            ("UCX_TLS=tcp", "NCCL_IB_HCA=a"),
            ("NCCL_NET=Socket", "MC_MS_FILTERS=b"),
        ]
    ]
    settings = settings_of_launchers([unreadable, *branches])
    assert certain(settings) == {"NCCL_IB_HCA": "a", "MC_MS_FILTERS": "b"}
    assert possible(settings) == {"UCX_TLS": "tcp", **SOCKET}


def test_the_source_of_a_forwarded_variable() -> None:
    """It is the option, not the container's `env`."""
    settings = set_by("mpirun -x NCCL_NET a", NCCL_NET="Socket")
    assert settings.certain["NCCL_NET"].source == "mpirun -x in the launcher's command"


def test_pods_without_launchers() -> None:
    """Their commands set nothing for others; a launcher of its own ranks neither."""
    script = "mpirun -x NCCL_NET=Socket a"
    worker = launcher("sh", "-c", script)
    worker["metadata"]["labels"] = {}
    assert settings_of_launchers([worker, {}]) is NO_SETTINGS
    assert settings_of_launchers([launcher("mpirun", "-x", "NCCL_NET=Socket", "a")]) is NO_SETTINGS
    unreadable = {"spec": {"containers": [{"command": "x"}]}}
    assert settings_of_launchers([unreadable, {}]) is NO_SETTINGS
    assert settings_of_launchers([]) is NO_SETTINGS


def test_a_launchers_settings_override_the_containers() -> None:
    """They reach the rank last."""
    settings = CommandSettings({"NCCL_NET": Setting("NCCL_NET", "IB", "x")})
    launchers = CommandSettings({"NCCL_NET": Setting("NCCL_NET", "Socket", "y")})
    assert certain(overridden_by(settings, launchers)) == SOCKET
    assert overridden_by(settings, NO_SETTINGS) is settings


def test_possible_settings_of_both() -> None:
    """The rank may get those of its own command and those of the launcher's."""
    socket, tcp = Setting("NCCL_NET", "Socket", "x"), Setting("UCX_TLS", "tcp", "y")
    settings = overridden_by(CommandSettings(possible=(socket,)), CommandSettings(possible=(tcp,)))
    assert settings.possible == (socket, tcp)
