"""The options for the cluster, together with a command's own."""

from __future__ import annotations

from collections import Counter

import pytest

from webhook.cli.options import cluster_access
from webhook.cli.parser import CommandParser, parse_words, parser


def _commands(command: CommandParser) -> list[CommandParser]:
    """Return a command and all commands below it."""
    below = [child for subcommand in command.commands.values() for child in _commands(subcommand)]
    return [command, *below]


@pytest.mark.parametrize("command", _commands(parser()), ids=lambda command: command.prog)
def test_each_option_has_its_own_value(command: CommandParser) -> None:
    """Two options with one destination would overwrite each other's value and default."""
    destinations = Counter(action.dest for action in command._actions)
    assert not [name for name, count in destinations.items() if count > 1]


@pytest.mark.parametrize(
    ("words", "measurement", "request_timeout"),
    [
        ([], 10, 0),
        (["--seconds", "30"], 30, 0),
        (["--request-timeout", "2m"], 10, 120),
        (["--seconds", "30", "--request-timeout", "1s"], 30, 1),
        (["--request-timeout", "1s", "--seconds", "30"], 30, 1),
    ],
    ids=["none", "measurement", "request", "both", "reversed"],
)
def test_measurements_and_requests_have_limits_of_their_own(
    words: list[str], measurement: int, request_timeout: float
) -> None:
    """`verify run --seconds` is not the limit of a request, and the limit is not its default."""
    arguments = parse_words(["verify", "run", *words])
    assert arguments.seconds == measurement
    assert cluster_access(arguments).overrides.request_timeout == request_timeout
