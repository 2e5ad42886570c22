from __future__ import annotations

import pytest

from tests.unit.decide.settings.reading import certain, settings_in
from webhook.decide.settings.setting import Setting


@pytest.mark.parametrize(
    "starter",
    [
        "env",
        "env env",
        "env env -u NCCL_NET",
        "env -u $X",
        "env -u UCX_TLS --",
        "env --chdir=/w",
        "env -v -C /w",
    ],
)
def test_variables_of_env(starter: str) -> None:
    """They follow the options of `env`, which may be unclear, or those of another `env`."""
    settings = settings_in(f"{starter} NCCL_NET=Socket torchrun a")
    assert certain(settings)["NCCL_NET"] == "Socket"
    assert settings.env_dropped_by == ""


@pytest.mark.parametrize("option", ["-", "-i", "--ignore-environment", "-u X -i"])
def test_an_empty_environment(option: str) -> None:
    """`env` then passes on only what its own words set."""
    settings = settings_in(f"export UCX_TLS=tcp; env {option} NCCL_NET=Socket torchrun a")
    assert certain(settings) == {"NCCL_NET": "Socket"}
    assert (settings.drops_env, settings.env_dropped_by) == (True, "env -i in its command")


@pytest.mark.parametrize("option", ["-u NCCL_NET", "-uNCCL_NET", "--unset=NCCL_NET"])
def test_removed_variables(option: str) -> None:
    """The removal is a setting of its own, which says what made it."""
    settings = settings_in(f"export NCCL_NET=Socket; env {option} torchrun a")
    removed = Setting("NCCL_NET", None, "env -u in its command", removed=True)
    assert settings.certain == {"NCCL_NET": removed}
