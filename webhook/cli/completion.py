"""Shell completion: the command `completion`, and the completion of `kubectl rdma`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

import shtab

from webhook.cli.output import write
from webhook.cli.parser import COMMANDS, parser

# `rdma-webhook completion`: print a script with which a shell completes the command line.
#
# shtab writes the script from the parsers, so it knows every command, option and choice, and no key
# press runs this program.

_SHELLS = ("bash", "zsh", "fish")
#: The metavars of options and arguments whose value is a file.
FILES = frozenset({"FILE", "FABRICS"})
#: The metavar of the arguments of `why`.
_POD_OR_CODE = "POD|KIND/NAME|CODE"
_EXAMPLES = """examples:
  source <(rdma-webhook completion bash)       for this shell only
  rdma-webhook completion bash > ~/.local/share/bash-completion/completions/rdma-webhook
  rdma-webhook completion zsh > ~/.zfunc/_rdma-webhook         a directory of $fpath
  rdma-webhook completion fish > ~/.config/fish/completions/rdma-webhook.fish
"""


def add_arguments(command: argparse.ArgumentParser) -> None:
    """Add the arguments of `completion`."""
    command.epilog = _EXAMPLES
    help_text = f"shell that reads the script: {', '.join(_SHELLS)}"
    command.add_argument("shell", choices=_SHELLS, metavar="SHELL", help=help_text)


def run(arguments: argparse.Namespace) -> int:
    """Print the script."""
    root = parser()
    _complete_words(root)
    write(shtab.complete(root, shell=arguments.shell))
    return 0


def _complete_words(command: argparse.ArgumentParser) -> None:
    """Mark the arguments that are files or codes, in this parser and its subcommands."""
    for action in command._actions:  # noqa: SLF001 -- argparse has no other list
        if isinstance(action, argparse._SubParsersAction):  # noqa: SLF001
            for subcommand in action.choices.values():
                _complete_words(subcommand)
        elif action.metavar in FILES:
            action.complete = shtab.FILE  # type: ignore[attr-defined]  # shtab reads it
        elif action.metavar == _POD_OR_CODE:
            action.complete = _candidates(code for code, _ in _codes())  # type: ignore[attr-defined]


def _candidates(words: Iterable[str]) -> dict[str, str | dict[str, str]]:
    """Return words as shtab's candidates; unlike argparse's choices, they allow other words."""
    joined = " ".join(words)
    bash = f'_rdma_webhook_codes() {{\n  compgen -W "{joined}" -- "$1"\n}}'
    return {
        "bash": "_rdma_webhook_codes",
        "zsh": f"({joined})",
        "fish": joined,
        "preamble": {"bash": bash},
    }


def _codes() -> list[tuple[str, str]]:
    """Return all codes, each with its first meaning; slow, since it imports all tools."""
    from webhook.diagnose.codes import CODE_NAMES, explain_code  # noqa: PLC0415 -- slow to import

    return [(code, explain_code(code).rows[0].code.meaning) for code in CODE_NAMES]


# `kubectl_complete-rdma`: kubectl runs it when Tab is pressed after `kubectl rdma`.
#
# Its arguments are the words after `rdma`; the last is unfinished. It prints each candidate for
# that word on a line, with an explanation after a tab, and at the end a colon and a number: whether
# the shell should offer files. It prints nothing else, and reads no cluster.
# Source: kubectl, pkg/cmd/plugin/plugin_completion.go; cobra, ShellCompDirective.

_FILES, _NO_FILES = 0, 4


class Offer(NamedTuple):
    """Candidates for a word with their explanations, or files."""

    candidates: Iterable[tuple[str, str]] = ()
    files: bool = False


def complete_for_kubectl() -> int:
    """Print the candidates for the last word."""
    words = sys.argv[1:] or [""]
    try:
        write(candidate_lines(words))
    except Exception:  # noqa: BLE001 -- whatever it is, it must not be written into a command line
        return 1
    return 0


def candidate_lines(words: Sequence[str]) -> str:
    """Return the candidates in kubectl's format."""
    *before, last = words
    offer = offer_for(before, last)
    prefix = last.partition("=")[2] if _has_value(last) else last
    lines = [
        f"{word}\t{' '.join(summary.split())}".rstrip()
        for word, summary in offer.candidates
        if word.startswith(prefix)
    ]
    return "\n".join([*lines, f":{_FILES if offer.files else _NO_FILES}\n"])


def offer_for(before: Sequence[str], last: str) -> Offer:
    """Return the candidates for the unfinished word `last` after the words `before`."""
    named = next((word for word in before if word in COMMANDS), None)
    root = parser(() if named is None else (named,))
    if named is None or before[:1] == ["help"]:
        return Offer(_options(root, before) if last.startswith("-") else COMMANDS.items())
    command, given = _command(root, before[before.index(named) :])
    if _has_value(last):
        return _values(_option(command, last.partition("=")[0]))
    option = _option(command, before[-1])
    if option is not None and option.nargs is None:
        return _values(option)
    if last.startswith("-"):
        return Offer(_options(command, before))
    commands = _commands(command)
    if commands is not None:
        return Offer((choice.dest, choice.help or "") for choice in commands._choices_actions)  # noqa: SLF001
    return _values(_argument(command, given))


def _has_value(word: str) -> bool:
    return word.startswith("--") and "=" in word


def _command(
    parent: argparse.ArgumentParser, given: Sequence[str]
) -> tuple[argparse.ArgumentParser, Sequence[str]]:
    """Return the innermost command that the words name, and the words after its name."""
    commands = _commands(parent)
    choices: Mapping[str, argparse.ArgumentParser] = commands.choices if commands else {}
    for count, word in enumerate(given, 1):
        if word in choices:
            return _command(choices[word], given[count:])
    return parent, given


def _commands(
    parent: argparse.ArgumentParser,
) -> argparse._SubParsersAction[argparse.ArgumentParser] | None:
    kind = argparse._SubParsersAction  # noqa: SLF001
    return next((action for action in _actions(parent) if isinstance(action, kind)), None)


def _actions(command: argparse.ArgumentParser) -> list[argparse.Action]:
    return command._actions  # noqa: SLF001 -- argparse has no other list


def _option(command: argparse.ArgumentParser, word: str) -> argparse.Action | None:
    return next((action for action in _actions(command) if word in action.option_strings), None)


def _options(command: argparse.ArgumentParser, given: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yield the options that are not given yet, or may be repeated, by their last name."""
    present = {word.partition("=")[0] for word in given}
    for action in _actions(command):
        if not action.option_strings or action.help == argparse.SUPPRESS:
            continue
        is_repeatable = isinstance(action, argparse._AppendAction)  # noqa: SLF001
        if is_repeatable or not present.intersection(action.option_strings):
            yield action.option_strings[-1], _help_text(command, action)


def _help_text(command: argparse.ArgumentParser, action: argparse.Action) -> str:
    return command._get_formatter()._expand_help(action) if action.help else ""  # noqa: SLF001


def _argument(command: argparse.ArgumentParser, given: Sequence[str]) -> argparse.Action | None:
    """Return the argument that comes next; None if all are present."""
    positional = [action for action in _actions(command) if not action.option_strings]
    count = len(list(_arguments(command, given)))
    if positional and (count < len(positional) or positional[-1].nargs in ("*", "+")):
        return positional[min(count, len(positional) - 1)]
    return None


def _arguments(command: argparse.ArgumentParser, given: Sequence[str]) -> Iterator[str]:
    """Yield the words that are neither options nor their values."""
    expects_value = False
    for word in given:
        option = _option(command, word)
        if not expects_value and (option is None or word == "-") and not _has_value(word):
            yield word
        expects_value = option is not None and option.nargs is None


def _values(action: argparse.Action | None) -> Offer:
    """Return the candidates for the value of an option or an argument."""
    if action is None:
        return Offer()
    if action.metavar == _POD_OR_CODE:
        return Offer(_codes())
    choices = ((str(choice), "") for choice in action.choices or ())
    return Offer(choices, files=action.metavar in FILES)
