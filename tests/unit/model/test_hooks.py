"""The hooks and probes of a container, as commands."""

from __future__ import annotations

from typing import Any

import pytest

from webhook.model.pod.hooks import HookCommand, hook_commands


def run_by(*words: Any) -> dict[str, Any]:
    """Make a handler that runs a command."""
    return {"exec": {"command": list(words)}}


def test_the_hook_and_the_probes() -> None:
    """The preStop hook is left out: it runs when the container ends."""
    container = {
        "lifecycle": {"postStart": run_by("sh", "-c", "a"), "preStop": run_by("b")},
        "livenessProbe": run_by("c"),
        "readinessProbe": run_by("d"),
        "startupProbe": run_by("e"),
    }
    hooks = list(hook_commands(container))
    assert hooks == [
        HookCommand("postStart hook", ("sh", "-c", "a")),
        HookCommand("startupProbe", ("e",)),
        HookCommand("readinessProbe", ("d",)),
        HookCommand("livenessProbe", ("c",)),
    ]
    assert hooks[0].text == "sh\n-c\na"


@pytest.mark.parametrize(
    "hook",
    [
        None,
        "x",
        {},
        {"postStart": {"httpGet": {"port": 80}}},
        {"postStart": {"exec": None}},
        {"postStart": {"exec": {"command": "sh"}}},
        {"postStart": run_by("sh", 1)},
    ],
)
def test_what_is_no_command_is_left_out(hook: Any) -> None:
    """The API server rejects a malformed one, with a better message."""
    assert list(hook_commands({"lifecycle": hook})) == []
