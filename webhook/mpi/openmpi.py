"""Whether a launcher's words run Open MPI for sure, and whether they leave hcoll to us.

`mpirun` is Open MPI, MPICH, Intel MPI or a site's script, and all but Open MPI refuse
`-mca` (MPICH 4.0 and Intel MPI 2021: "unrecognized argument mca", exit code 255). So a
flag needs a proof of a closed list: the launcher's name or path, an OMPI_MCA_* variable,
`-mca`, `-x` or `--allow-run-as-root`. An Open MPI before 5 refuses to start when a
parameter is given twice, so it must also be clear that the words do not settle hcoll.

Sources: `mpirun --help full` of Open MPI 4.1.4, `mpiexec.hydra -help` of MPICH 4.0.2;
prterun as of Open MPI 5.0.8: it takes `-mca` for the name of the program.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

from webhook.mpi.launchers import FAMILIES
from webhook.shelltext.argv import Word, basename

#: What `hcoll` writes, so never evidence.
SWITCH = "OMPI_MCA_coll_hcoll_enable"

PREFIX = "OMPI_MCA_"
_PATHS = ("openmpi", "hpcx")
_OTHER_ENV = ("I_MPI_", "HYDRA_")
#: Text that another MPI leaves in a command: variables, paths, Intel's setup scripts.
_OTHER_TEXT = (*_OTHER_ENV, "mpich", "mvapich", "MV2_", "/intel/", "setvars.sh", "mpivars.sh")
_REMOTE_ENV = ("OMPI_MCA_orte_default_hostfile", "OMPI_MCA_plm_rsh_args")


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


# Options without their dashes: Open MPI takes one or two of them.
_MCA = _names("mca gmca omca gomca")
_PROOFS = _names("mca x allow-run-as-root")
_FILES = _names("app am tune")  # more options in a file
_HOSTS = _names("H host hostfile machinefile default-hostfile add-host add-hostfile")
_TWO = _MCA | _names("pmixmca prtemca")
_ONE = (
    _HOSTS
    | _FILES
    | _names(
        "c n np N x bind-to map-by rank-by cpu-list cpu-set cpus-per-proc cpus-per-rank npernode"
        " npersocket ppr rf rankfile cf cartofile path prefix wd wdir stdin output"
        " output-filename timeout display personality launch-agent debugger xterm preload-files"
        " report-pid report-uri report-events ompi-server hnp max-restarts max-vm-size"
    )
)
_NONE = _names(
    "allow-run-as-root oversubscribe nooversubscribe nolocal pernode bycore bynode byslot"
    " bind-to-core bind-to-socket use-hwthread-cpus use-regexp display-allocation display-map"
    " display-devel-allocation display-devel-map display-diffable-map display-topo"
    " report-bindings report-child-jobs-separately report-state-on-timeout tag-output"
    " timestamp-output merge-stderr-to-stdout index-argv-by-rank q quiet v verbose d debug"
    " debug-devel debug-daemons debug-daemons-file leave-session-attached get-stack-traces"
    " do-not-launch do-not-resolve noprefix novm dvm continuous enable-recovery"
    " disable-recovery enable-instant-on-support fwd-mpirun-port output-proctable"
    " show-progress s preload-binary set-cwd-to-session-dir tv xml"
)
#: Options that only MPICH's and Intel's launcher has.
_HYDRA = _names(
    "genv genvall genvlist genvnone env envall envlist envnone f hosts ppn perhost grr rr iface"
    " configfile bootstrap bootstrap-exec launcher launcher-exec rmk prepend-rank prepend-pattern"
    " print-rank-map pmi-port membind topolib demux usize localhost order-nodes"
)


class _Options(NamedTuple):
    names: tuple[str, ...]  #: those known to be the launcher's
    values: tuple[Word, ...]  #: first value of each, None where it has none or is not known
    rest: Sequence[Word]  #: what follows them: the program, or what cannot be told
    clear: bool  #: whether `rest` begins with the program


class Proof(NamedTuple):
    """What the words of a launcher tell."""

    proof: str = ""  #: what proves that they start Open MPI
    obstacle: str = ""  #: why no option may be added to them all the same


def speaks_of_another(text: str, env: Iterable[str]) -> bool:
    """Whether a container's command, or a variable's name, is a sign of another MPI.

    It outweighs every proof. Asked once for a container: its text may be long.
    """
    return any(sign in text for sign in _OTHER_TEXT) or any(
        name.startswith(_OTHER_ENV) for name in env
    )


def telling(env: Iterable[str]) -> Mapping[str, None]:
    """Pick the variables that `judge` and `reaches_by_ssh` ask for, each once, in their order.

    A container may have many variables and many launchers.
    """
    return dict.fromkeys(name for name in env if name.startswith(PREFIX) and name != SWITCH)


def judge(front: Sequence[Word], words: Sequence[Word], env: Collection[str]) -> Proof:
    """Tell whether a launcher is Open MPI, and open for an option; an empty verdict if not.

    `front` is what stands before its word, `env` the names of the container's variables. An
    option proves only its own command, an OMPI_MCA_* in `env` all commands of the container.
    """
    name = basename(words[0] or "")
    if FAMILIES.get(name) == "another MPI":
        return Proof()
    options = _options(words)
    proof = _proof(front, words[0] or "", env, options)
    if not proof or not _HYDRA.isdisjoint(options.names):
        return Proof()
    return Proof(proof, _obstacle(name, words, options))


def _proof(front: Sequence[Word], word: str, env: Iterable[str], options: _Options) -> str:
    if FAMILIES.get(basename(word)) == "Open MPI":
        return basename(word)
    if any(sign in part for part in word.split("/")[:-1] if "$" not in part for sign in _PATHS):
        return word
    for name in (*(before.partition("=")[0] for before in front if before), *env):
        if name.startswith(PREFIX) and name != SWITCH:
            return name
    return next((f"-{name}" for name in options.names if name in _PROOFS), "")


def _obstacle(name: str, words: Sequence[Word], options: _Options) -> str:
    own = {word.lstrip("-") for word in options.rest if word and word[0] == "-"}
    unclear = frozenset() if options.clear else own
    if name == "prterun":
        return "does not know Open MPI's parameters"
    if any(word and "hcoll" in word for word in words):
        return "settles hcoll itself"
    if any(map(_chooses_collectives, options.names, options.values)):
        return "chooses collectives itself"
    if ":" in words:
        return "has several contexts (`:`)"
    if not _FILES.isdisjoint(options.names) or not _FILES.isdisjoint(unclear):
        return "reads options from a file"
    unknown = not options.clear and (None in options.rest or "coll" in options.rest)
    return "has words that only the shell knows" if unknown else ""


def _chooses_collectives(name: str, value: Word) -> bool:
    return name in _MCA and (value is None or value == "coll" or "$" in value)


def reaches_by_ssh(words: Sequence[Word], env: Collection[str]) -> bool:
    """Whether an Open MPI launcher starts ranks on other machines, and by ssh."""
    if "OMPI_MCA_plm_rsh_agent" in env or "plm_rsh_agent" in words:
        return False  # kubexec.sh, say, whose processes inherit the container's environment
    options = _options(words)
    return (
        any(name in env for name in _REMOTE_ENV)
        or not _HOSTS.isdisjoint(options.names)
        or "plm_rsh_args" in options.values
    )


def _options(words: Sequence[Word]) -> _Options:
    """Read the launcher's options, as far as it is certain that they are its own."""
    names: list[str] = []
    values: list[Word] = []
    at, clear = 1, True
    while at < len(words):
        word = words[at]
        if word is None or word[:1] != "-":
            clear = word is not None and (word[0:1] != "$" or "/" in word)
            break
        name = word.lstrip("-")
        count = _values_of(name, words[at + 1 : at + 2])
        names.append(name.partition("=")[0])
        values.append(words[at + 1] if count and at + 1 < len(words) else None)
        if count is None:
            clear = False
            at += 1
            break
        at += 1 + count
    return _Options(tuple(names), tuple(values), words[at:], clear)


def _values_of(name: str, following: Sequence[Word]) -> int | None:
    """Return how many words an option takes; None if the next one may be its value or not."""
    if name in _TWO:
        return 2
    if name in _ONE:
        return 1
    if name in _NONE or "=" in name:
        return 0
    return 0 if following and (following[0] or "")[:1] == "-" else None
