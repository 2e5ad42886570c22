"""Read the fabrics files and facts files that options name."""

from __future__ import annotations

from webhook.cli.inputs import read_input, shown_name
from webhook.config import FACTS_COMMAND
from webhook.config.files import FACTS_LIMITS, decode, parse_facts
from webhook.config.load import LIMITS, parse_fabrics
from webhook.errors import DocumentError
from webhook.model.fabric import CompiledConfiguration
from webhook.model.facts import Facts


def read_configuration(name: str) -> CompiledConfiguration:
    """Read a fabrics file; InvalidConfiguration, with all errors, if it is not valid."""
    return parse_fabrics(read_text(name, LIMITS.size), shown_name(name)).compiled


def read_facts(name: str, command: str = FACTS_COMMAND) -> Facts:
    """Read a file with the output of a command; InvalidConfiguration if it has no usable facts."""
    return parse_facts(read_text(name, FACTS_LIMITS.size), shown_name(name), command)


def read_text(name: str, limit: int) -> str:
    """Read an input of at most `limit` bytes as UTF-8."""
    content = read_input(name, limit)
    if len(content) > limit:
        raise DocumentError(f"{shown_name(name)}: is larger than the maximum of {limit:,} bytes")
    return decode(content, shown_name(name))
