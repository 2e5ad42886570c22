"""Find the option by which a launcher is given the hosts that it starts ranks on.

Without hosts a launcher starts all its ranks in its own container, unless its environment or a
scheduler names some. Options are read up to the program, whose own options (`-f 2`) mean other
things. If it is not known whether a word is an option's value or the program, only options that
hardly any program has are found after it.

Sources: mpirun(1) of Open MPI 4.1, prterun of Open MPI 5.0, `mpiexec.hydra -help` of MPICH 4.0 and
of Intel MPI 2021, `mpirun_rsh` of MVAPICH2, and `horovodrun --help` of Horovod 0.28.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from webhook.decide.launchers.commands import Commands, Launch
from webhook.decide.launchers.openmpi import (
    HOSTS,
    PREFIX,
    judge,
    parameters,
    reaches_by_ssh,
    speaks_of_another,
    telling,
    values_of,
)
from webhook.decide.shell.argv import Word, basename
from webhook.model.pod import Path

_NAMING = HOSTS | {"hosts", "f", "hostlist", "host-discovery-script"}
_UNMISTAKABLE = _NAMING - {"f", "host"}
_PARAMETERS = frozenset({"mca", "gmca", "omca", "gomca", "pmixmca", "prtemca"})
#: Options of Hydra, besides those that Open MPI has too: how many values each takes.
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
_LOCAL = frozenset({"localhost", "127.0.0.1"})
#: Programs that start a rank in the launcher's own container, given in place of ssh.
_LOCAL_AGENTS = frozenset({"", "sh", "bash", "false", "true"})


def names_hosts(words: Sequence[Word]) -> str:
    """Return the option by which a launcher is given other hosts, "" if there is none.

    For a parameter, that is `--mca plm_rsh_agent`, say. `words` are those of the launcher and all
    after it.
    """
    at = 1
    while at < len(words):
        word = words[at]
        if word is None:  # `$OPTIONS`: nothing is known of it
            at += 1
            continue
        if word[:1] != "-":
            return ""
        name, equals, value = word.lstrip("-").partition("=")
        values = [value] if equals else words[at + 1 : at + 3]
        if _leads_elsewhere(name, values):
            option = word.partition("=")[0]
            return f"{option} {values[0]:.60}" if name in _PARAMETERS else option
        count = 0 if equals else _HYDRA.get(name, values_of(name, words[at + 1 : at + 2]))
        if count is None:
            return _unmistakable(words[at + 1 :])
        at += 1 + count
    return ""


def sets_hosts(variable: str, value: Word) -> bool:
    """Return whether a parameter of Open MPI, or its variable, says where ranks are started."""
    if variable.endswith("_default_hostfile"):
        return True
    if "plm_rsh_" not in variable and "plm_ssh_" not in variable:
        return False
    if value is None or not variable.endswith("_agent"):
        return True
    return basename(value.split(" ", 1)[0]) not in _LOCAL_AGENTS


def _leads_elsewhere(name: str, values: Sequence[Word]) -> bool:
    first = values[0] if values else None
    if name in _PARAMETERS:
        return first is not None and sets_hosts(first, values[1] if len(values) > 1 else None)
    return name in _NAMING and not _is_local(first)


def _is_local(hosts: Word) -> bool:
    return hosts is not None and all(host.partition(":")[0] in _LOCAL for host in hosts.split(","))


def _unmistakable(words: Sequence[Word]) -> str:
    for at, word in enumerate(words):
        if word is not None and word[:1] == "-":
            name, equals, value = word.lstrip("-").partition("=")
            given = value if equals else next(iter(words[at + 1 : at + 2]), None)
            if name in _UNMISTAKABLE and not _is_local(given):
                return word.partition("=")[0]
    return ""


# A container's launches of Open MPI: which accept the flag against hcoll, and which use ssh.
#
# openmpi.py decides whether a launch is certainly Open MPI's, and what may still rule out the flag.


def accepts_mca_flag(
    commands: Commands, path: Path, names: Collection[str]
) -> tuple[list[Launch], str]:
    """List the launches that accept the flag; if there are launches but none does, say why.

    `names` are the names of the container's variables. A launch behind sudo, or in a script that
    was not read, cannot be edited; `hcoll` warns about it separately.
    """
    launches = [launch for launch in commands.launches(path) if launch.editable]
    if not launches:
        return [], ""
    text = commands.text(path)
    if _settled(text, launches):
        return [], "the command settles hcoll itself"
    if speaks_of_another(text, names):
        return [], "the container speaks of another MPI"
    known = telling(names)
    found, whys = [], []
    for launch in launches:
        verdict = judge(launch.front, launch.words, known)
        why = verdict.obstacle if verdict.proof else "is not proven to be Open MPI"
        if why:
            whys.append(f"{basename(launch.words[0] or '')} {why}")
        else:
            found.append(launch)
    return found, "" if found else ", ".join(dict.fromkeys(whys))


def forwards_by_ssh(commands: Commands, path: Path, names: Collection[str]) -> bool:
    """Return whether a container whose variables have these names starts Open MPI ranks over ssh.

    Such ranks get only OMPI_* from the launcher's environment, and anything else by `-x`
    (Open MPI 4.1, schizo_ompi.c).
    """
    launches = [launch for launch in commands.launches(path) if launch.editable]
    if not launches or speaks_of_another(commands.text(path), names):
        return False
    known = telling(names)
    return any(
        judge(launch.front, launch.words, known).proof and reaches_by_ssh(launch.words, known)
        for launch in launches
    )


def parameters_of(
    commands: Commands, path: Path, own: Mapping[str, Word]
) -> Iterator[dict[str, Word]]:
    """Yield Open MPI's parameters: of the container's variables, `own`, and of each launch.

    A launch adds those of the words in front of it and of its options. What is only known when the
    container runs is None.
    """
    inherited = _assigned(own.items())
    yield inherited
    if not commands.launches(path):
        return
    names = telling(own)
    for launch in commands.launches(path):
        words = launch.launcher if not launch.problem else ()
        if words and judge(launch.front, words, names).proof:
            front = (word.partition("=")[::2] for word in launch.front if word)
            yield inherited | _assigned(front) | parameters(words)


def _assigned(variables: Iterable[tuple[str, Word]]) -> dict[str, Word]:
    return {
        name.removeprefix(PREFIX): value for name, value in variables if name.startswith(PREFIX)
    }


def _settled(text: str, launches: list[Launch]) -> bool:
    """Return whether the command mentions hcoll outside the launchers' words: an export, say."""
    if "hcoll" not in text and "HCOLL" not in text:
        return False
    words = [word for launch in launches for word in launch.words if word]
    return "HCOLL" in text or text.count("hcoll") > sum(word.count("hcoll") for word in words)
