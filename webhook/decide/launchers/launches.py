"""Find the option that names a launcher's hosts, and launches that take flags or use ssh.

Without hosts a launcher starts all its ranks in its own container, unless its environment or a
scheduler names some. Options are read up to the program, whose own options (`-f 2`) have other
meanings. After a word that may be either an option's value or the program, only options that
programs rarely have are recognized.

Sources: mpirun(1) of Open MPI 4.1, prterun of Open MPI 5.0, `mpiexec.hydra -help` of MPICH 4.0 and
of Intel MPI 2021, `mpirun_rsh` of MVAPICH2, and `horovodrun --help` of Horovod 0.28.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from webhook.decide.launchers.commands import Commands, LauncherCommand
from webhook.decide.launchers.openmpi import (
    HOST_OPTIONS,
    MCA_PREFIX,
    check_open_mpi,
    evidence_variables,
    parameters,
    reaches_by_ssh,
    shows_other_mpi,
    value_count,
)
from webhook.decide.shell.argv import Word, basename
from webhook.model.pod import Path

#: Options that name hosts; other programs have few of them.
_HOST_OPTIONS_OF_ANY_MPI = HOST_OPTIONS | {"hosts", "f", "hostlist", "host-discovery-script"}
_UNMISTAKABLE_OPTIONS = _HOST_OPTIONS_OF_ANY_MPI - {"f", "host"}
_PARAMETER_OPTIONS = frozenset({"mca", "gmca", "omca", "gomca", "pmixmca", "prtemca"})
#: Hydra's options that Open MPI lacks, each with its number of values.
_HYDRA = {
    **dict.fromkeys(
        (
            *("f", "hosts", "hostlist", "ppn", "perhost", "grr", "rr", "iface", "configfile"),
            *("bootstrap", "bootstrap-exec", "launcher", "launcher-exec", "rmk", "genvlist"),
            *("envlist", "prepend-pattern", "usize", "topolib", "membind"),
        ),
        1,
    ),
    **dict.fromkeys(("genv", "env"), 2),
    **dict.fromkeys(
        (
            *("genvall", "genvnone", "envall", "envnone", "prepend-rank", "l", "localonly"),
            *("print-rank-map", "nolocal", "order-nodes"),
        ),
        0,
    ),
}
#: Characters of an expansion in a word.
_EXPANDING = frozenset("$`")
_LOCAL = frozenset({"localhost", "127.0.0.1"})
#: Programs that start a rank in the launcher's own container, given in place of ssh.
_LOCAL_AGENTS = frozenset({"", "sh", "bash", "false", "true"})


def hosts_option(words: Sequence[Word]) -> str:
    """Return the option with which a launcher gets other hosts, or "".

    For a parameter, this is `--mca plm_rsh_agent`, for example. `words` are the launcher's word and
    all words after it.
    """
    index = 1
    while index < len(words):
        word = words[index]
        if word is None:  # `$OPTIONS`: its value is unknown
            index += 1
            continue
        if word[:1] != "-":
            return ""
        name, equals, value = word.lstrip("-").partition("=")
        values = [value] if equals else words[index + 1 : index + 3]
        if _names_other_hosts(name, values):
            option = word.partition("=")[0]
            return f"{option} {values[0]:.60}" if name in _PARAMETER_OPTIONS else option
        count = 0 if equals else value_count_of_any_mpi(name, words[index + 1 : index + 2])
        if count is None:
            return _unmistakable(words[index + 1 :])
        index += 1 + count
    return ""


def value_count_of_any_mpi(name: str, following: Sequence[Word]) -> int | None:
    """Return the number of an option's values, of Open MPI's or Hydra's; None if unclear."""
    return _HYDRA.get(name, value_count(name, following))


def sets_hosts(variable: str, value: Word) -> bool:
    """Return whether a parameter of Open MPI, or its variable, determines where ranks start."""
    if variable.endswith("_default_hostfile"):
        return True
    if "plm_rsh_" not in variable and "plm_ssh_" not in variable:
        return False
    if value is None or not variable.endswith("_agent"):
        return True
    return basename(value.split(" ", 1)[0]) not in _LOCAL_AGENTS


def _names_other_hosts(name: str, values: Sequence[Word]) -> bool:
    first = values[0] if values else None
    if name in _PARAMETER_OPTIONS:
        return first is not None and sets_hosts(first, values[1] if len(values) > 1 else None)
    return name in _HOST_OPTIONS_OF_ANY_MPI and not _is_local(first)


def _is_local(hosts: Word) -> bool:
    return hosts is not None and all(host.partition(":")[0] in _LOCAL for host in hosts.split(","))


def _unmistakable(words: Sequence[Word]) -> str:
    for index, word in enumerate(words):
        if word is not None and word[:1] == "-":
            name, equals, value = word.lstrip("-").partition("=")
            hosts = value if equals else next(iter(words[index + 1 : index + 2]), None)
            if name in _UNMISTAKABLE_OPTIONS and not _is_local(hosts):
                return word.partition("=")[0]
    return ""


# A container's launches of Open MPI that accept the flag against hcoll, or use ssh.
#
# openmpi.py decides whether a launch is certainly Open MPI's, and whether it still rules out the
# flag.


def launches_accepting_flag(
    commands: Commands, path: Path, names: Collection[str]
) -> tuple[list[LauncherCommand], str]:
    """List the launches that accept the flag; if none of the launches does, also return why not.

    `names` are the names of the container's variables. A launch after sudo, or in an unread script,
    cannot be edited; `hcoll` warns about it separately.
    """
    launches = [launch for launch in commands.launches(path) if launch.editable]
    if not launches:
        return [], ""
    text = commands.text(path)
    if _command_mentions_hcoll(text, launches):
        return [], "the command configures HCOLL itself"
    if shows_other_mpi(text, names):
        return [], "the container names another MPI implementation"
    variables = evidence_variables(names)
    accepting, refusals = [], []
    for launch in launches:
        check = check_open_mpi(launch.front, launch.launcher_words, variables)
        refusal = check.obstacle if check.evidence else "is not certain to be Open MPI"
        if refusal:
            refusals.append(f"{basename(launch.launcher_words[0] or '')} {refusal}")
        else:
            accepting.append(launch)
    return accepting, "" if accepting else ", ".join(dict.fromkeys(refusals))


def forwards_by_ssh(commands: Commands, path: Path, names: Collection[str]) -> bool:
    """Return whether a container whose variables have these names starts Open MPI ranks over ssh.

    Such ranks get only OMPI_* from the launcher's environment, and anything else by `-x`
    (Open MPI 4.1, schizo_ompi.c).
    """
    launches = [launch for launch in commands.launches(path) if launch.editable]
    if not launches or shows_other_mpi(commands.text(path), names):
        return False
    variables = evidence_variables(names)
    return any(
        check_open_mpi(launch.front, launch.launcher_words, variables).evidence
        and reaches_by_ssh(launch.launcher_words, variables)
        for launch in launches
    )


def parameters_of_launches(
    commands: Commands, path: Path, user_env: Mapping[str, Word]
) -> Iterator[Mapping[str, Word] | None]:
    """Yield Open MPI's parameters for each launch; None if that may be another MPI's.

    They come from the container's variables, `user_env`, then from the words before the launcher,
    then from its options. Values that are only known when the container runs are None.
    """
    launches = commands.launches(path)
    variables = evidence_variables(user_env) if launches else {}
    inherited = mca_parameters(user_env.items())
    for launch in launches:
        words = launch.launcher_words if not launch.problem else ()
        if words and check_open_mpi(launch.front, words, variables).evidence:
            front = (word.partition("=")[::2] for word in launch.front if word)
            own = {**mca_parameters(front), **parameters(words)}
            yield {**inherited, **{name: _literal(value) for name, value in own.items()}}
        else:
            yield None


def mca_parameters(variables: Iterable[tuple[str, Word]]) -> dict[str, Word]:
    """Return the parameters that variables set, OMPI_MCA_pml=ob1 as pml → ob1."""
    return {
        name.removeprefix(MCA_PREFIX): value
        for name, value in variables
        if name.startswith(MCA_PREFIX)
    }


def _literal(word: Word) -> Word:
    """Return a word as the launcher gets it; None if the shell expands it."""
    return word if word and _EXPANDING.isdisjoint(word) else None


def _command_mentions_hcoll(text: str, launches: list[LauncherCommand]) -> bool:
    """Return whether the command mentions hcoll outside the launchers' words, as in an export."""
    if "hcoll" not in text and "HCOLL" not in text:
        return False
    words = [word for launch in launches for word in launch.launcher_words if word]
    return "HCOLL" in text or text.count("hcoll") > sum(word.count("hcoll") for word in words)
