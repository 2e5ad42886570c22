"""The options of MPI launchers, and of srun, that set variables of the ranks.

    option                                launcher        effect
    ------                                --------        ------
    -x NAME=VALUE                         Open MPI        set; the last of several counts; in
                                                          `-x A=1,B=2` all after the first `=` is A
    -x NAME                               Open MPI        the launcher's own value
    --mca mca_base_env_list "A=1;B=2"     Open MPI        set; not together with -x
    -genv NAME VALUE, -genv NAME=VALUE    MPICH, Intel    set
    -env NAME VALUE                       MPICH, Intel    set, whatever -genv sets
    -genvlist, -envlist NAME,…            MPICH, Intel    the launcher's own values
    -genvnone, -envnone                   MPICH, Intel    nothing for ranks on its own machine
    --export=ALL,NAME=VALUE               srun            set; without ALL, the rest is dropped

Run with Open MPI 4.1.4 and MPICH 4.0.2; srun(1) of Slurm 23.11 was read, not run.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from webhook.decide.launchers.launches import value_count_of_any_mpi
from webhook.decide.launchers.openmpi import MCA_OPTIONS, MCA_PREFIX
from webhook.decide.settings.builtins import assignments
from webhook.decide.shell.argv import Word, basename

_ENV_LIST = "mca_base_env_list"
#: Hydra's options that take a name and a value.
_NAME_AND_VALUE = frozenset({"env", "genv"})
_LISTS = frozenset({"envlist", "genvlist"})


class RankVariables(NamedTuple):
    """The variables that a launcher sets for its ranks."""

    #: The name, value and option of each, the decisive one last; a None as value is unknown.
    variables: tuple[tuple[str, Word, str], ...] = ()
    program: int | None = None  #: the index of the program in the words; None if it is unclear
    forwarded: tuple[str, ...] = ()  #: variables whose value is the launcher's


def rank_variables(words: Sequence[Word]) -> RankVariables:
    """Read the options of the launcher that is the first word."""
    launcher, options = basename(words[0] or ""), _Options([], [], [])
    index: int | None = 1
    program = None
    while index is not None and index < len(words):
        word = words[index]
        if word is None or word[:1] != "-":
            program = None if word is None else index
            break
        index = _read_option(words, index, launcher, options)
    variables = (*options.general, *options.local)
    return RankVariables(variables, program, tuple(options.forwarded))


class _Options(NamedTuple):
    """The variables in the options so far."""

    general: list[tuple[str, Word, str]]
    local: list[tuple[str, Word, str]]  #: of -env, which wins
    forwarded: list[str]


def _read_option(words: Sequence[Word], index: int, launcher: str, options: _Options) -> int | None:
    """Read the option at `index`; return the index after it and its values, None if unclear."""
    word = words[index] or ""
    name, following = word.lstrip("-"), words[index + 1 : index + 3]
    source = f"{launcher} {word:.20}"
    (options.local if name == "env" else options.general).extend(
        (variable, value, source) for variable, value in _set_by(name, following)
    )
    first = following[0] if following else None
    if name == "x" and first and "=" not in first:
        options.forwarded.append(first)
    if name in _LISTS and first:
        options.forwarded.extend(first.split(","))
    count = 1 if _is_joined(name, following) else value_count_of_any_mpi(name, following)
    return None if count is None else index + 1 + count


def _is_joined(name: str, following: Sequence[Word]) -> bool:
    """Return whether an option of Hydra has name and value in one word, as `-genv A=1`."""
    return name in _NAME_AND_VALUE and bool(following) and "=" in (following[0] or "")


def _set_by(name: str, following: Sequence[Word]) -> list[tuple[str, Word]]:
    """Return the variables that an option with these next words sets."""
    first, second = (*following, None, None)[:2]
    if first is None:
        return []
    if name == "x" or _is_joined(name, following):
        return list(assignments((first,)))
    if name in _NAME_AND_VALUE and len(following) > 1:
        return [(first, second)]
    if name in MCA_OPTIONS and len(following) > 1:
        if first == _ENV_LIST:
            return list(assignments((second or "").split(";")))
        return [(f"{MCA_PREFIX}{first}", second)]
    return []


class Export(NamedTuple):
    """The environment that srun gives its tasks."""

    variables: tuple[tuple[str, str], ...]
    drops_env: bool  #: whether they get nothing else of srun's environment


def srun_export(words: Sequence[Word]) -> Export:
    """Read the option `--export` of srun, the first word."""
    for word, following in zip(words[1:], (*words[2:], None), strict=False):
        name, equals, value = (word or "").partition("=")
        if name == "--export":
            parts = (value if equals else following or "").split(",")
            return Export(tuple(assignments(parts)), "ALL" not in parts)
    return Export((), drops_env=False)
