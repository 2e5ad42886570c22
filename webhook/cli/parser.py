"""The parser of the command line; each command defines its options in its own module."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from importlib import import_module
from types import ModuleType
from typing import NoReturn

from webhook import __version__
from webhook.visible import visible

_USAGE = 2
#: Command → summary; the module of a command has its name.
_COMMANDS = {
    "serve": "run the webhook",
    "preview": "show what would happen to pods, and why",
    "check-config": "check a fabrics file",
    "certs": "show certificates, or exchange the CA",
    "schema": "print a JSON Schema",
}
_EXAMPLES = """examples:
  rdma-webhook preview train.yaml              what would happen to its pods, and why
  rdma-webhook preview --enable train.yaml     the same, as if they had opted in
  kubectl get deploy -o yaml | rdma-webhook preview -c fabrics.yaml -
  rdma-webhook check-config fabrics.yaml
  rdma-webhook serve --dev                     a webhook on 127.0.0.1, no cluster needed
"""


class _Formatter(argparse.RawDescriptionHelpFormatter):
    """Keeps the layout of the examples, and leaves more room for the names of options."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog, max_help_position=32)


class _Parser(argparse.ArgumentParser):
    """A parser whose errors are one line."""

    def error(self, message: str) -> NoReturn:
        self.exit(_USAGE, f"rdma-webhook: error: {visible(message)} (see {self.prog} --help)\n")


def parser(argv: Sequence[str]) -> argparse.ArgumentParser:
    """Return the parser for these words, with the options of the command that is among them.

    The module of that command becomes `module`. The other modules are not imported, so that a
    preview does not have to load the web server.
    """
    root = _Parser(
        prog="rdma-webhook",
        description="An admission webhook that makes NCCL, UCX and MPI run over RDMA.",
        epilog=_EXAMPLES,
        formatter_class=_Formatter,
        allow_abbrev=False,
    )
    root.add_argument("--version", action="version", version=f"rdma-webhook {__version__}")
    commands = root.add_subparsers(metavar="COMMAND", required=True)
    asked = next((word for word in argv if word in _COMMANDS), None)
    for name, summary in _COMMANDS.items():
        command = commands.add_parser(
            name,
            help=summary,
            description=f"{summary[0].upper()}{summary[1:]}.",
            formatter_class=_Formatter,
            allow_abbrev=False,
        )
        if name == asked:
            module = _module(name)
            module.add_arguments(command)
            command.set_defaults(module=module)
    return root


def _module(command: str) -> ModuleType:
    return import_module(f"webhook.cli.{command.replace('-', '_')}")
