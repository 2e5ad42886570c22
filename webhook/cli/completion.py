"""`rdma-webhook completion`: print a script with which a shell completes the command line.

shtab writes the script from the parsers, so it knows every command, option and choice, and no key
press runs this program.
"""

from __future__ import annotations

import argparse

import shtab

from webhook.cli.output import write
from webhook.cli.parser import parser

_SHELLS = ("bash", "zsh", "fish")
#: What options and arguments whose value is a file are called in --help.
FILES = frozenset({"FILE", "FABRICS"})
_EXAMPLES = """examples:
  source <(rdma-webhook completion bash)       for this shell only
  rdma-webhook completion bash > ~/.local/share/bash-completion/completions/rdma-webhook
  rdma-webhook completion zsh > ~/.zfunc/_rdma-webhook         a directory of $fpath
  rdma-webhook completion fish > ~/.config/fish/completions/rdma-webhook.fish
"""


def add_arguments(command: argparse.ArgumentParser) -> None:
    """Add the arguments of `completion`."""
    command.epilog = _EXAMPLES
    command.add_argument("shell", choices=_SHELLS, help="the shell to write the script for")


def run(arguments: argparse.Namespace) -> int:
    """Print the script."""
    root = parser()
    _complete_files(root)
    write(shtab.complete(root, shell=arguments.shell))
    return 0


def _complete_files(command: argparse.ArgumentParser) -> None:
    """Say which arguments are files, for this parser and those of its commands."""
    for action in command._actions:  # noqa: SLF001 -- argparse has no other list
        if isinstance(action, argparse._SubParsersAction):  # noqa: SLF001
            for one in action.choices.values():
                _complete_files(one)
        elif action.metavar in FILES:
            action.complete = shtab.FILE  # type: ignore[attr-defined]  # shtab reads it
