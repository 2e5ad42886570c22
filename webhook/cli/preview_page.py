"""`rdma-webhook preview --page`: the page for browsers, on this computer and without a cluster."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from webhook.cli.config_files import read_configuration
from webhook.cli.options import port_number
from webhook.text.escape import visible_lines

#: The options that mean something with --page; the others are choices in the page.
_ALLOWED = frozenset({"config", "page", "port"})
_NO_FILE = "--page reads FABRICS again when it changes, so it must be a file"
#: The manifests, by position or with -f.
_FILES = frozenset({"files", "filenames"})


def add_page_options(command: argparse.ArgumentParser) -> None:
    """Add the options of the page."""
    add = command.add_argument
    add(
        "--page",
        action="store_true",
        help="serve a page at http://127.0.0.1 to paste manifests into, until Ctrl-C",
    )
    add(
        "--port",
        type=port_number,
        metavar="PORT",
        help="with --page, its port (default: any free one)",
    )


def page_requested(arguments: argparse.Namespace) -> bool:
    """Return whether to serve the page; exit if an option does not go with that."""
    if not arguments.page:
        if arguments.port is not None:
            arguments.command.error("--port requires --page")
        return False
    for action in arguments.command._actions:  # noqa: SLF001 -- argparse has no other list
        if action.dest in _ALLOWED or action.default == argparse.SUPPRESS:
            continue
        value = getattr(arguments, action.dest)
        if value and value != action.default:
            arguments.command.error(_refusal(action))
    return True


def _refusal(action: argparse.Action) -> str:
    if action.dest in _FILES:
        return "FILE cannot be combined with --page; paste or drop the file into the page"
    return f"{action.option_strings[-1]} cannot be combined with --page"


def serve_page(arguments: argparse.Namespace, fabrics: str | None) -> int:
    """Serve the page until Ctrl-C and return 0; `fabrics`: a file, or None for an example.

    Raises DocumentError or InvalidConfiguration if the file cannot be used. Exits if it is a pipe,
    which can be read only once.
    """
    from webhook.serve.server import ServeOptions, serve  # noqa: PLC0415 -- slow to import

    if fabrics is not None:
        if fabrics == "-" or (Path(fabrics).exists() and not Path(fabrics).is_file()):
            arguments.command.error(_NO_FILE)
        read_configuration(fabrics)
    return serve(
        ServeOptions(
            dev=True,
            page_only=True,
            page_port=arguments.port or 0,
            config=Path(fabrics) if fabrics is not None else None,
            log_level="warning",
            announce=_announce,
        )
    )


def _announce(message: str) -> None:
    sys.stdout.write(visible_lines(message))
    sys.stdout.flush()
