"""Each file of a table is in it; a file missing from its table would silently do nothing."""

from __future__ import annotations

import re
from argparse import ArgumentParser
from collections.abc import Iterator
from dataclasses import fields
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from types import ModuleType
from typing import Any

import pytest

import webhook.cli
import webhook.config.rules
import webhook.decide.mutations
import webhook.diagnose.tools.readers
import webhook.preview.workloads.controllers
from webhook.cli import preview, serve
from webhook.cli.options import add_cluster_options
from webhook.cli.parser import parser
from webhook.config.rules import RULES, Rule
from webhook.decide.mutations import MUTATIONS
from webhook.diagnose.tools.readers import READERS
from webhook.diagnose.tools.readers.layouts import Reader
from webhook.model import annotations as keys_of_pods
from webhook.preview import writers
from webhook.preview.formats import FORMATS, HTTP_FORMATS
from webhook.preview.workloads.controllers import CONTROLLERS
from webhook.preview.workloads.controllers.workload import Controller
from webhook.serve.http import preview as preview_endpoint
from webhook.serve.http.query import PARAMETERS
from webhook.serve.options import DEFAULTS, ServeOptions

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
OPERATION = (ROOT / "docs" / "operation.md").read_text(encoding="utf-8")
#: Fields of ServeOptions without an option of `serve`: only tests and `preview --page` set them.
WITHOUT_OPTION = {
    *("preview_seconds", "poll_seconds", "request_seconds", "idle_seconds"),
    "page_only",
}


def modules(package: ModuleType) -> Iterator[ModuleType]:
    """Import the modules of a package."""
    for module in iter_modules(package.__path__):
        yield import_module(f"{package.__name__}.{module.name}")


def test_every_mutation_is_registered() -> None:
    """Each file has a MUTATION, which is in MUTATIONS of webhook/decide/mutations/__init__.py."""
    written = {module.MUTATION.name for module in modules(webhook.decide.mutations)}
    assert written == {mutation.name for mutation in MUTATIONS}


def test_every_format_is_registered() -> None:
    """FORMATS and the functions `write_<name>` of webhook/preview/writers.py are the same."""
    functions = [name for name in vars(writers) if name.startswith("write_")]
    assert {name.removeprefix("write_") for name in functions} == {
        output.name for output in FORMATS
    }


def test_every_rule_is_collected() -> None:
    """RULES has the rules of every file in webhook/config/rules."""
    files = modules(webhook.config.rules)
    values = [value for file in files for value in vars(file).values()]
    assert {value for value in values if isinstance(value, Rule)} == set(RULES)
    assert len(set(RULES)) == len(RULES)


def test_every_controller_is_registered() -> None:
    """Every `Controller` is in CONTROLLERS of preview/workloads/controllers/__init__.py, once."""
    files = modules(webhook.preview.workloads.controllers)
    values = [value for file in files for value in vars(file).values()]
    assert {value for value in values if isinstance(value, Controller)} == set(CONTROLLERS)
    assert len(set(CONTROLLERS)) == len(CONTROLLERS)


def test_every_reader_is_registered() -> None:
    """Every `Reader` of a file is in READERS of diagnose/tools/readers/__init__.py, once."""
    files = modules(webhook.diagnose.tools.readers)
    values = [value for file in files for value in vars(file).values()]
    assert {value for value in values if isinstance(value, Reader)} == set(READERS)
    assert len(set(READERS)) == len(READERS)


def test_each_kind_has_a_single_controller() -> None:
    """A kind in two rows would be decided by their order."""
    kinds = [kind for controller in CONTROLLERS for kind in controller.kinds]
    assert len(set(kinds)) == len(kinds)


def commands() -> list[str]:
    """List the commands of the command line."""
    (subcommands,) = (action for action in parser([])._actions if action.dest == "==SUPPRESS==")
    assert subcommands.choices is not None
    return list(subcommands.choices)


def test_every_command_is_registered() -> None:
    """A file of webhook/cli with `add_arguments` is a command and has its row in the README."""
    written = {
        module.__name__.rpartition(".")[2].replace("_", "-")
        for module in modules(webhook.cli)
        if hasattr(module, "add_arguments")
    }
    assert written == set(commands())
    assert set(re.findall(r"^\| `rdma-webhook ([a-z-]+)", README, re.MULTILINE)) == written


def test_every_annotation_is_known() -> None:
    """A key in webhook/model/annotations.py that begins with rdma.lab/ is read or written."""
    keys = {
        value
        for name, value in vars(keys_of_pods).items()
        if name.isupper() and isinstance(value, str) and value.startswith(keys_of_pods.PREFIX)
    }
    assert keys - {keys_of_pods.PREFIX} == {
        *keys_of_pods.USER_ANNOTATIONS,
        *keys_of_pods.WEBHOOK_ANNOTATIONS,
    }


def test_served_formats_are_documented() -> None:
    """The HTTP usage text and docs/operation.md name each format with its media type."""
    for output in HTTP_FORMATS:
        for text in (preview_endpoint.USAGE, OPERATION):
            assert output.media_types[0] in text
            assert re.search(rf"\b{output.name}\b", text)


def test_every_parameter_is_documented() -> None:
    """USAGE in webhook/serve/http/preview.py has a line for each of PARAMETERS in query.py."""
    lines = re.findall(r"^  ([a-z-]+)=", preview_endpoint.USAGE, re.MULTILINE)
    assert set(PARAMETERS) == set(lines)


def test_every_option_of_preview_is_in_its_row() -> None:
    """README.md's row of `preview` has each option of webhook/cli/preview.py."""
    command = ArgumentParser()
    preview.add_arguments(command)
    cluster = ArgumentParser()
    add_cluster_options(cluster)
    common = {"--help", "--filename", "--namespace-label", *cluster._option_string_actions}
    (row,) = re.findall(r"^\| `rdma-webhook preview (.+?)` \|", README, re.MULTILINE)
    missing = [
        action.option_strings
        for action in command._actions
        if action.option_strings and common.isdisjoint(action.option_strings)
        if not any(re.search(rf"(?<![\w-]){option}\b", row) for option in action.option_strings)
    ]
    assert missing == []


#: Parser of an option → a value that it accepts.
_VALUES = {
    "decision_count": "77",
    "duration": "77h",
    "port_number": "77",
    "seconds_up_to_hour": "77",
}


def _given(command: ArgumentParser) -> Iterator[str]:
    """Write each option with a value other than its default."""
    for action in command._actions:
        (*_, flag) = action.option_strings or ("",)
        if flag in ("", "--help"):
            continue
        yield flag
        if action.choices is not None:
            yield next(str(choice) for choice in action.choices if choice != action.default)
        elif action.nargs != 0:
            yield _VALUES.get(getattr(action.type, "__name__", ""), "other")


def _unchanged(options: Any, defaults: Any) -> Iterator[str]:
    for field in fields(options):
        if getattr(options, field.name) == getattr(defaults, field.name):
            yield field.name


def test_every_option_of_serve_arrives(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each option reaches ServeOptions, and each field of ServeOptions but a few has an option."""
    command = ArgumentParser()
    serve.add_arguments(command)
    caught: list[ServeOptions] = []

    def catch(options: ServeOptions) -> int:
        caught.append(options)
        return 0

    monkeypatch.setattr(serve, "serve", catch)
    serve.run(command.parse_args(list(_given(command))))
    (options,) = caught
    assert set(_unchanged(options, DEFAULTS)) == WITHOUT_OPTION
    assert list(_unchanged(options.durations, DEFAULTS.durations)) == ["idle_connection"]
