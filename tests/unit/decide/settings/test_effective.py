from __future__ import annotations

from webhook.decide.settings.effective import effective_env, settings_in_effect, uncertain
from webhook.decide.settings.setting import NO_SETTINGS, CommandSettings, Setting

ENV = {"NCCL_NET": "IB", "A": "b"}


def settings(*members: Setting, drops_env: bool = False) -> CommandSettings:
    """Make certain settings."""
    return CommandSettings({setting.name: setting for setting in members}, drops_env=drops_env)


def test_commands_override_the_containers_env() -> None:
    """Set, unknown and removed variables; the others stay."""
    changes = settings(
        Setting("NCCL_NET", "Socket", "x"),
        Setting("UCX_TLS", None, "x"),
        Setting("A", None, "x", removed=True),
        Setting("B", None, "x", removed=True),
    )
    env = {**ENV, "OTHER": "c"}
    expected = {"NCCL_NET": "Socket", "UCX_TLS": None, "OTHER": "c"}
    assert effective_env(env, changes, present=env) == expected
    assert effective_env(ENV, NO_SETTINGS, present=ENV) is ENV


def test_a_dropped_environment() -> None:
    """Only what commands set afterwards is left."""
    change = Setting("UCX_TLS", "tcp", "x", yields_to_env=True)
    assert effective_env(ENV, settings(change, drops_env=True), present={"UCX_TLS": "rc"}) == {
        "UCX_TLS": "tcp"
    }
    assert effective_env(ENV, settings(drops_env=True), present=ENV) == {}


def test_defaults_apply_to_absent_variables() -> None:
    """A variable that the webhook adds is present."""
    default = settings(Setting("NCCL_NET", "Socket", "x", yields_to_env=True))
    assert effective_env({}, default, present={"NCCL_NET": "IB"}) == {}
    assert effective_env({}, default, present={}) == {"NCCL_NET": "Socket"}
    assert list(settings_in_effect(default, present={"NCCL_NET": "IB"})) == []
    computed = settings(Setting("NCCL_NET", None, "x", yields_to_env=True))
    assert list(uncertain(computed, present={"NCCL_NET": "IB"})) == []


def test_uncertain_settings() -> None:
    """Unknown values of variables that decide come before possible settings."""
    computed, socket = Setting("NCCL_NET", None, "x"), Setting("NCCL_NET", "Socket", "y")
    changes = settings(
        computed, Setting("NCCL_IB_DISABLE", None, "x", removed=True), Setting("UCX_TLS", "rc", "x")
    )._replace(
        possible=(
            socket,
            Setting("NCCL_DEBUG", "INFO", "x"),
            Setting("NCCL_NET", None, "x", removed=True),
            Setting("UCX_TLS", "tcp", "x", yields_to_env=True),
        )
    )
    assert list(uncertain(changes, present={"UCX_TLS": "rc"})) == [computed, socket]
    assert [setting.name for setting in uncertain(changes, present={})][2:] == ["UCX_TLS"]


def test_many_possible_values() -> None:
    """A variable with more than two may have any; the message names what sets the first."""
    values = [Setting("NCCL_IB_HCA", f"mlx5_{i}", source) for i, source in enumerate("xyz")]
    assert list(uncertain(CommandSettings(possible=tuple(values[:2])), present={})) == values[:2]
    assert list(uncertain(CommandSettings(possible=tuple(values)), present={})) == [
        Setting("NCCL_IB_HCA", None, "x")
    ]
