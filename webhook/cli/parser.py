"""The parser of the command line; each command defines its options in its own module."""

from __future__ import annotations

import argparse
import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from importlib import import_module
from textwrap import wrap
from types import MappingProxyType
from typing import NoReturn

from webhook import __version__
from webhook.cli.inputs import check_inputs
from webhook.cli.output import program_name
from webhook.model.nearest import nearest, suggestion
from webhook.text.escape import visible

_USAGE = 2
#: Options that need no command.
_OWN_OPTIONS = ("-h", "--help", "--version")
#: A longer command line is truncated in a message.
_MAX_LINE = 200
#: What argparse writes → what we write.
_OUR_WORDS = (
    (re.compile(r"^the following arguments are required: "), "missing "),
    (re.compile(r": not allowed with argument "), " cannot be combined with "),
    (re.compile(r": ignored explicit argument .*"), " takes no value"),
)
#: Command → summary; the module of a command has its name.
COMMANDS = {
    "serve": "run the webhook server",
    "preview": "show how the webhook would change pods, and whether they would have RDMA",
    "why": "explain why a pod has RDMA, or why it has none, and what to do",
    "fabrics": "show the nodes of each fabric, their resources and problems",
    "discover": "derive fabrics from the output of tools run on the nodes",
    "verify": "measure the network between nodes, and grade benchmark output",
    "check-config": "check fabrics files",
    "diff-config": "show which decisions a new fabrics file would change",
    "check-install": "check whether all parts of an installation are there and work together",
    "certs": "check the webhook's certificates, or rotate its CA",
    "schema": "print a JSON Schema, or the CustomResourceDefinition",
    "completion": "print a shell completion script",
}
_EXAMPLES = """examples:
  rdma-webhook preview -c fabrics.yaml train.yaml    will its pods have RDMA?
  rdma-webhook preview --enable train.yaml           the same, as if the pods had opted in
  kubectl get deploy -o yaml | rdma-webhook preview -c fabrics.yaml -
  rdma-webhook check-config fabrics.yaml
  rdma-webhook serve --dev                           the webhook on 127.0.0.1, without a cluster
  rdma-webhook help preview                          the options of a command
"""
#: Where an example calls this program: at the start of a line, or after a pipe.
_CALL = re.compile(r"(?m)(^  |\| )rdma-webhook (?=[a-z])")


class _Formatter(argparse.RawDescriptionHelpFormatter):
    """Keeps the layout of the examples, and leaves more room for the names of options."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog, max_help_position=32)

    def start_section(self, heading: str | None) -> None:
        """Name the arguments that are not options as kubectl does."""
        super().start_section("arguments" if heading == "positional arguments" else heading)

    def add_usage(
        self,
        usage: str | None,
        actions: Iterable[argparse.Action],
        groups: Iterable[argparse._MutuallyExclusiveGroup],
        prefix: str | None = None,
    ) -> None:
        """Leave out the names of optional options, which are too many for a line."""
        parts = ["%(prog)s", "[options]"]
        for action in actions:
            if action.option_strings and action.required:
                parts.insert(1, self._format_action_invocation(action))
            elif not action.option_strings:
                parts.append(self._format_args(action, action.dest))
        super().add_usage(usage or " ".join(parts), actions, groups, prefix)

    def _format_action(self, action: argparse.Action) -> str:
        """List commands like options, without a heading for them."""
        if isinstance(action, argparse._SubParsersAction):  # noqa: SLF001
            return "".join(map(super()._format_action, action._get_subactions()))  # noqa: SLF001
        return super()._format_action(action)

    def _format_action_invocation(self, action: argparse.Action) -> str:
        """Name the value of an option only once, as Python 3.13 does."""
        if not action.option_strings:
            return super()._format_action_invocation(action)
        value = self._format_args(action, action.dest.upper())
        return f"{', '.join(action.option_strings)} {value}".rstrip()

    def _split_lines(self, text: str, width: int) -> list[str]:
        """Break help texts between words only, not at the hyphens of names and paths."""
        return wrap(text, width, break_on_hyphens=False)


class CommandParser(argparse.ArgumentParser):
    """A parser whose errors are a single line, with the nearest word."""

    #: The parsers of the commands below this one.
    commands: Mapping[str, CommandParser] = MappingProxyType({})

    def error(self, message: str) -> NoReturn:
        """Print the error on a line, in our words instead of argparse's, and exit."""
        plain = message.removeprefix("argument ")
        for pattern, replacement in _OUR_WORDS:
            plain = pattern.sub(replacement, plain)
        if plain.startswith("missing "):
            plain += self._choices_of(plain.removeprefix("missing "))
        self.exit(_USAGE, f"rdma-webhook: error: {visible(plain)} (see {self.prog} --help)\n")

    def _choices_of(self, metavar: str) -> str:
        """Return a clause with the choices of the argument that has this name; "" without any."""
        return "".join(_choices(action) for action in self._actions if action.metavar == metavar)

    def _match_argument(self, action: argparse.Action, arg_strings_pattern: str) -> int:
        """Name the value that an option lacks."""
        try:
            return super()._match_argument(action, arg_strings_pattern)
        except argparse.ArgumentError:
            metavar = action.metavar or ("value" if action.choices else action.dest.upper())
            message = f"missing {metavar}{_choices(action)}"
            raise argparse.ArgumentError(action, message) from None

    def append(self, words: Sequence[str], arguments: argparse.Namespace) -> list[str]:
        """Append words between options to the argument that takes any number; return the rest."""
        for action in self._actions:
            if action.nargs == "*" and not action.option_strings:
                getattr(arguments, action.dest).extend(self._values(action, words))
                return [word for word in words if _is_option(word)]
        return list(words)

    def _values(self, action: argparse.Action, words: Sequence[str]) -> list[object]:
        try:
            return [self._get_value(action, word) for word in words if not _is_option(word)]
        except argparse.ArgumentError as error:
            self.error(str(error))

    def refuse(self, words: Sequence[str]) -> NoReturn:
        """Report unrecognized words."""
        names = [name for action in self._actions for name in action.option_strings]
        hint = _option_suggestion(words[0].partition("=")[0], names)
        options = [word for word in words if _is_option(word)]  # a value may follow each
        noun = "option" if options else "argument"
        listed = options or words
        self.error(f"unknown {noun}{'s' * (len(listed) > 1)}: {' '.join(listed)}{hint}")

    def _check_value(self, action: argparse.Action, value: object) -> None:
        """Check a word against its choices; the message begins with the word."""
        choices = [str(choice) for choice in action.choices or ()]
        if not choices or value in choices:
            return
        if action.choices is self.commands:
            hint = suggestion(value, choices) or f"; use one of {', '.join(choices)}"
            self.error(f"unknown command {value!r:.80}{hint}")
        hint = suggestion(value, choices)
        message = f"{value!r:.80} is not one of {', '.join(choices)}{hint}"
        raise argparse.ArgumentError(action, message)


def _choices(action: argparse.Action) -> str:
    return f"; use one of {', '.join(map(str, action.choices))}" if action.choices else ""


def _option_suggestion(word: str, options: Iterable[str]) -> str:
    """Compare names without their dashes, which would make all options alike."""
    by_name = {option.lstrip("-"): option for option in options}
    names = nearest(word.lstrip("-"), by_name)
    return f" (did you mean {by_name[names[0]]}?)" if names else ""


def parse_words(words: Sequence[str]) -> argparse.Namespace:
    """Parse a command line; its command's module becomes `module`.

    `help COMMAND` is `COMMAND --help`. Files may stand between options, although argparse accepts
    them in one place only and returns the others unparsed.
    """
    if words[:1] == ["help"]:
        words = [*words[1:], "--help"]
    root = parser({word for word in words if word in COMMANDS})
    _check_order(root, words)
    arguments, unparsed = root.parse_known_args(words)
    command: CommandParser = getattr(arguments, "command", root)
    if unparsed := command.append(unparsed, arguments):
        command.refuse(unparsed)
    check_inputs(command, arguments)
    if not hasattr(arguments, "module"):
        arguments.parent.error(f"missing command; use one of {', '.join(arguments.subcommands)}")
    return arguments


def _check_order(root: CommandParser, words: Sequence[str]) -> None:
    """Exit if options come before the command, with the line in the right order."""
    early: list[str] = []
    command, following = root, list(words)
    while names := [word for word in following if word in command.commands]:
        index = following.index(names[0])
        command, early, following = (
            command.commands[names[0]],
            early + following[:index],
            following[index + 1 :],
        )
    first = next(iter([*early, *following]), "")
    if not _is_option(first) or first in _OWN_OPTIONS:
        return
    if early:
        line = f"{command.prog} {shlex.join([*early, *following])}"
        root.error(f"options come after the command: {line:.{_MAX_LINE}}")
    if command.commands and not all(map(_is_option, following)):
        command.error(f"missing command before {first}; use one of {', '.join(command.commands)}")


def _is_option(word: str) -> bool:
    """Return whether an unparsed word is an option; "-" is standard input."""
    return word.startswith("-") and word != "-"


def parser(named: Iterable[str] = COMMANDS) -> CommandParser:
    """Return the parser, with the options of the named commands.

    Only their modules are imported, so that a preview does not load the web server.
    """
    root = CommandParser(
        prog=program_name(),
        description="Equip pods for RDMA at admission, and explain whether they have it.",
        epilog=_as_called(_EXAMPLES),
        formatter_class=_Formatter,
        allow_abbrev=False,
    )
    root.add_argument(
        "--version",
        action="version",
        version=f"rdma-webhook {__version__}",
        help="print the version and exit",
    )
    add_commands(root, __package__, COMMANDS, named)
    return root


def add_commands(
    parent: CommandParser,
    package: str,
    summaries: Mapping[str, str],
    named: Iterable[str] | None = None,
) -> None:
    """Add commands to a parser: name → summary; the module of each is in the package.

    Only the named commands get their options; None means all. A module without a function `run`
    has subcommands.
    """
    parent.set_defaults(parent=parent, subcommands=list(summaries))
    commands = parent.add_subparsers(metavar="COMMAND", title="commands", prog=parent.prog)
    parent.commands = commands.choices
    for name, summary in summaries.items():
        command = commands.add_parser(
            name,
            help=summary,
            description=f"{summary[0].upper()}{summary[1:]}.",
            formatter_class=_Formatter,
            allow_abbrev=False,
        )
        if named is None or name in named:
            module = import_module(f"{package}.{name.replace('-', '_')}")
            module.add_arguments(command)
            command.epilog = _as_called(command.epilog or "")
            command.set_defaults(command=command)
            if callable(getattr(module, "run", None)):  # a package may have a module of that name
                command.set_defaults(module=module)


def _as_called(examples: str) -> str:
    """Return examples with the program's name as the user typed it, also `kubectl rdma`."""
    return _CALL.sub(rf"\1{program_name()} ", examples)
