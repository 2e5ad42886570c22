"""What the words in front of a program, and the options of some, do to the program's process."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from webhook.decide.settings.builtins import assignments
from webhook.decide.settings.engine_options import engine_settings
from webhook.decide.settings.launch_options import srun_export
from webhook.decide.settings.process import Process
from webhook.decide.shell.argv import FrontPart, Word


def apply_front_part(words: Sequence[Word], part: FrontPart, process: Process) -> None:
    """Apply assignments in front of a command, or what `env` and `exec -c` do."""
    front_words = words[part.start : part.end]
    if part.program == "env":
        _apply_env(front_words[1:], process)
    elif part.program == "exec" and "-c" in front_words:
        process.drop("exec -c in its command")
    elif not part.program:
        for name, value in assignments(front_words):
            process.assign(name, value, "assignment in its command")


def _apply_env(words: Sequence[Word], process: Process) -> None:
    removed = list(_unset_by_env(words))
    if any(word in ("-", "-i", "--ignore-environment") for word in words):
        process.drop("env -i in its command")
    for name in removed:
        process.remove(name, "env -u in its command")
    for name, value in assignments(words):
        process.assign(name, value, "env in its command")


def _unset_by_env(words: Sequence[Word]) -> Iterator[str]:
    for word, following in zip(words, (*words[1:], None), strict=False):
        if word in ("-u", "--unset") and following:
            yield following
        elif word and word.startswith(("-u", "--unset=")):
            yield word.removeprefix("--unset=").removeprefix("-u")


def apply_srun(words: Sequence[Word], process: Process) -> None:
    """Apply what srun passes on, and what it keeps back."""
    export = srun_export(words)
    if export.drops_env:
        process.drop("srun --export in its command")
    for name, value in export.variables:
        process.assign(name, value, "srun --export in its command")


def apply_engine(words: Sequence[Word], process: Process) -> None:
    """Apply the variables that options of an inference engine stand for."""
    for option, name, value in engine_settings(words):
        process.assign(name, value, f"{option} in its command")
