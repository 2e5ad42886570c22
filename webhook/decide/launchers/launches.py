"""Find the option by which a launcher is given the hosts that it starts ranks on.

Without hosts a launcher starts all its ranks in its own container, unless its environment or a
scheduler names some. Options are read up to the program, whose own options (`-f 2`) mean other
things. If it is not known whether a word is an option's value or the program, only options that
hardly any program has are found after it.

Sources: mpirun(1) of Open MPI 4.1, prterun of Open MPI 5.0, `mpiexec.hydra -help` of MPICH 4.0 and
of Intel MPI 2021, `mpirun_rsh` of MVAPICH2, and `horovodrun --help` of Horovod 0.28.
"""

from __future__ import annotations

from collections.abc import Sequence

from webhook.decide.launchers.openmpi import HOSTS, values_of
from webhook.decide.shell.argv import Word, basename

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
