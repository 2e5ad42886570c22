"""The style of --help: as kubectl and gh write it."""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator

import pytest

from tests.unit.cli.shell import Shell
from webhook.cli.parser import CommandParser, parser

#: Words that keep their capital at the start of a help text.
_NAMES = frozenset(
    {"CA", "CAs", "GPUs", "HTTP", "HTTPS", "Multus", "RDMA", "Secret", "Service", "TLS", "UID"}
    | {"MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"}
)
#: Phrases that no editor would leave in a help text.
_STILTED = re.compile(
    r"\b(tells?|told|beside|what \w+ printed|says? (?:of|that|which)|(?:by|of|that) which)\b"
)


def _parsers(command: CommandParser) -> Iterator[CommandParser]:
    yield command
    for child in command.commands.values():
        yield from _parsers(child)


COMMANDS = {command.prog: command for command in _parsers(parser())}


def _visible(command: CommandParser) -> list[argparse.Action]:
    return [action for action in command._actions if action.help != argparse.SUPPRESS]


@pytest.mark.parametrize("name", COMMANDS)
def test_help_texts_share_a_style(name: str) -> None:
    """They begin in lower case, have no full stop, and no phrases of a translation."""
    command = COMMANDS[name]
    for action in _visible(command):
        if isinstance(action, argparse._SubParsersAction):
            texts = [choice.help for choice in action._get_subactions()]
        else:
            texts = [action.help]
        for text in texts:
            assert text
            first, *_ = text.split()
            assert first == first.lower() or first.strip(",") in _NAMES
            assert not text.endswith(".")
            assert _STILTED.search(text) is None
    assert _STILTED.search(command.epilog or "") is None


@pytest.mark.parametrize("name", COMMANDS)
def test_defaults_stand_in_parentheses(name: str) -> None:
    """A default is named as `(default: X)`."""
    for action in _visible(COMMANDS[name]):
        assert "default" not in re.sub(r"\(default(: [^)]+\)?)?\)", "", action.help or "")


def test_the_usage_is_a_line(shell: Shell) -> None:
    """It has arguments and required options; the others would fill a screen."""
    for words, usage in (
        (("--help",), "rdma-webhook [options] COMMAND ..."),
        (("preview", "--help"), "rdma-webhook preview [options] [FILE ...]"),
        (("diff-config", "--help"), "rdma-webhook diff-config [options] NEW"),
        (("verify", "nccl", "--help"), "rdma-webhook verify nccl --image IMAGE [options]"),
        (("verify", "--help"), "rdma-webhook verify [options] COMMAND ..."),
    ):
        assert shell(*words).out.splitlines()[0] == f"usage: {usage}"


def test_the_value_of_an_option_is_named_once(shell: Shell) -> None:
    """`-c, --config FABRICS` and not `-c FABRICS, --config FABRICS`."""
    lines = shell("preview", "--help").out.splitlines()
    assert any(line.startswith("  -c, --config FABRICS  ") for line in lines)
    assert any(line.startswith("  --strict  ") for line in lines)
    assert "arguments:" in lines


def test_commands_are_listed_with_their_summary(shell: Shell) -> None:
    """Each has a line of its own, below a heading."""
    lines = shell("--help").out.splitlines()
    listed = lines[lines.index("commands:") + 1 :]
    assert listed[0].split(maxsplit=1) == ["serve", "run the webhook server"]
    assert ["check-config", "check fabrics files"] in [line.split(maxsplit=1) for line in listed]
