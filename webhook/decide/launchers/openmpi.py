"""Decide whether a launcher's words certainly run Open MPI without configuring hcoll themselves.

`mpirun` is Open MPI, MPICH, Intel MPI or a site's script, and all but Open MPI reject `-mca`
(MPICH 4.0 and Intel MPI 2021: "unrecognized argument mca", exit code 255). So the option
`-mca coll_hcoll_enable 0` is added only with evidence from a closed list: the launcher's name or
path, OMPI_MCA_* or OMPI_ALLOW_RUN_AS_ROOT in env, `-mca`, `-x` or `--allow-run-as-root`. Open MPI
before version 5 does not start if a parameter is given twice, so it must also be certain that the
words do not configure hcoll.

The training-operator gives the launcher of every MPIJob of kubeflow.org/v1 variables of both Open
MPI and Intel MPI, whichever it runs, so these are signs of neither.

Sources: `mpirun --help full` of Open MPI 4.1.4, `mpiexec.hydra -help` of MPICH 4.0.2, and
prterun of Open MPI 5.0.8, which takes `-mca` for the name of the program; newLauncher of
training-operator v1.9.2, pkg/controller.v1/mpi/mpijob_controller.go.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

from webhook.decide.launchers.commands import MPI_BY_LAUNCHER
from webhook.decide.shell.argv import Word, basename

#: The variable that the mutation `hcoll` sets; it is therefore never evidence.
HCOLL_VARIABLE = "OMPI_MCA_coll_hcoll_enable"

MCA_PREFIX = "OMPI_MCA_"
_OMPI_ENV = (MCA_PREFIX, "OMPI_ALLOW_RUN_AS_ROOT")
_AGENT = "OMPI_MCA_plm_rsh_agent"
#: What the training-operator sets for Open MPI and for Intel MPI, for both in every launcher.
_OPERATOR_OMPI = frozenset({_AGENT, "OMPI_MCA_orte_default_hostfile"})
_OPERATOR_INTEL = frozenset({"I_MPI_HYDRA_BOOTSTRAP", "I_MPI_HYDRA_BOOTSTRAP_EXEC"})
_PATHS = ("openmpi", "hpcx")
_INTEL_ENV = "I_MPI_"
_OTHER_ENV = (_INTEL_ENV, "HYDRA_")
#: Text that shows Intel MPI in a command: variables, paths, setup scripts.
_INTEL_TEXT = (_INTEL_ENV, "/intel/", "setvars.sh", "mpivars.sh")
#: The same for all but Open MPI.
_OTHER_TEXT = (*_OTHER_ENV, *_INTEL_TEXT, "mpich", "mvapich", "MV2_")
_REMOTE_ENV = ("OMPI_MCA_orte_default_hostfile", "OMPI_MCA_plm_rsh_args")


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


# Options without their dashes: Open MPI accepts one dash or two.
#: Options that set a parameter.
MCA_OPTIONS = _names("mca gmca omca gomca")
_PROOFS = _names("mca x allow-run-as-root")
_FILES = _names("app am tune")  # these read more options from a file
#: Options that name hosts.
HOST_OPTIONS = _names("H host hostfile machinefile default-hostfile add-host add-hostfile")
_TWO_VALUES = MCA_OPTIONS | _names("pmixmca prtemca")
_SINGLE_VALUE = (
    HOST_OPTIONS
    | _FILES
    | _names(
        "c n np N x bind-to map-by rank-by cpu-list cpu-set cpus-per-proc cpus-per-rank npernode"
        " npersocket ppr rf rankfile cf cartofile path prefix wd wdir stdin output"
        " output-filename timeout display personality launch-agent debugger xterm preload-files"
        " report-pid report-uri report-events ompi-server hnp max-restarts max-vm-size"
    )
)
_NO_VALUE = _names(
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
#: Options that only the launchers of MPICH and Intel MPI have.
_HYDRA = _names(
    "genv genvall genvlist genvnone env envall envlist envnone f hosts ppn perhost grr rr iface"
    " configfile bootstrap bootstrap-exec launcher launcher-exec rmk prepend-rank prepend-pattern"
    " print-rank-map pmi-port membind topolib demux usize localhost order-nodes"
)


class _Options(NamedTuple):
    """The options of a launcher; a Word is None if it may expand to any number of words."""

    names: tuple[str, ...]  #: the options that are certainly the launcher's
    values: tuple[Word, ...]  #: the first value of each; None if missing or unknown
    parameters: tuple[tuple[Word, Word], ...]  #: the names and values that `-mca` sets
    rest: Sequence[Word]  #: the words after them, from the program or from the first unclear word
    clear: bool  #: whether `rest` begins with the program


class OpenMpiCheck(NamedTuple):
    """The conclusion from a launcher's words."""

    evidence: str = ""  #: the word or variable that shows that they start Open MPI; "" if none
    obstacle: str = ""  #: the reason why no option may be added to them nevertheless


def shows_other_mpi(text: str, env: Collection[str]) -> bool:
    """Return whether a container's command, or the name of a variable, is a sign of another MPI.

    Such a sign outweighs all evidence. Call this once per container, since its text may be long.
    """
    ignored = _OPERATOR_INTEL if _AGENT in env else frozenset[str]()
    return any(sign in text for sign in _OTHER_TEXT) or any(
        name.startswith(_OTHER_ENV) and name not in ignored for name in env
    )


def shows_intel_mpi(text: str, env: Collection[str]) -> bool:
    """Return whether a container's command, or the name of a variable, is a sign of Intel MPI."""
    ignored = _OPERATOR_INTEL if _AGENT in env else frozenset[str]()
    return any(sign in text for sign in _INTEL_TEXT) or any(
        name.startswith(_INTEL_ENV) and name not in ignored for name in env
    )


def evidence_variables(env: Iterable[str]) -> Mapping[str, None]:
    """Select the variables that `check_open_mpi` and `reaches_by_ssh` use, each once, in order.

    Call this once per container, since it may have many variables and many launchers.
    """
    return dict.fromkeys(
        name
        for name in env
        if name in _OPERATOR_INTEL or (name.startswith(_OMPI_ENV) and name != HCOLL_VARIABLE)
    )


def check_open_mpi(
    front: Sequence[Word], words: Sequence[Word], env: Collection[str]
) -> OpenMpiCheck:
    """Decide whether a launcher is Open MPI's and accepts an option; return an empty check if not.

    `front` are the words before the launcher's, `env` the names of the container's variables. An
    option is evidence for its own command only, a variable of Open MPI in `env` for all commands of
    the container.
    """
    name = basename(words[0] or "")
    if MPI_BY_LAUNCHER.get(name) == "another MPI":
        return OpenMpiCheck()
    options = _options(words)
    evidence = _evidence(front, words[0] or "", env, options)
    if not evidence or not _HYDRA.isdisjoint(options.names):
        return OpenMpiCheck()
    return OpenMpiCheck(evidence, _obstacle(name, words, options))


def _evidence(front: Sequence[Word], word: str, env: Collection[str], options: _Options) -> str:
    if MPI_BY_LAUNCHER.get(basename(word)) == "Open MPI":
        return basename(word)
    if any(sign in part for part in word.split("/")[:-1] if "$" not in part for sign in _PATHS):
        return word
    by_operator = any(name in env for name in _OPERATOR_INTEL)
    unproven = _OPERATOR_OMPI if by_operator else frozenset[str]()
    for name in (*(front_word.partition("=")[0] for front_word in front if front_word), *env):
        if name.startswith(_OMPI_ENV) and name != HCOLL_VARIABLE and name not in unproven:
            return name
    return next((f"-{name}" for name in options.names if name in _PROOFS), "")


def _obstacle(name: str, words: Sequence[Word], options: _Options) -> str:
    dashed = {word.lstrip("-") for word in options.rest if word and word[0] == "-"}
    possible_options = frozenset() if options.clear else dashed
    if name == "prterun":
        return "does not accept Open MPI's parameters"
    if any(word and "hcoll" in word for word in words):
        return "configures HCOLL itself"
    if any(map(_chooses_collectives, options.names, options.values)):
        return "chooses collectives itself"
    if ":" in words:
        return "has several contexts (`:`)"
    if not _FILES.isdisjoint(options.names) or not _FILES.isdisjoint(possible_options):
        return "reads options from a file"
    unknown = not options.clear and (None in options.rest or "coll" in options.rest)
    return "has words that only the shell can expand" if unknown else ""


def _chooses_collectives(name: str, value: Word) -> bool:
    return name in MCA_OPTIONS and (value is None or value == "coll" or "$" in value)


def parameters(words: Sequence[Word]) -> dict[str, Word]:
    """Return the parameters that a launcher's options set, `-mca pml ob1` as pml → ob1.

    The last of several settings counts. Reading ends at the first word that may not be an option.
    """
    return {name: value for name, value in _options(words).parameters if name is not None}


def reaches_by_ssh(words: Sequence[Word], env: Collection[str]) -> bool:
    """Return whether an Open MPI launcher starts ranks on other machines by ssh."""
    if _AGENT in env or "plm_rsh_agent" in words:
        return False  # an agent such as kubexec.sh: its processes inherit the container's env
    options = _options(words)
    return (
        any(name in env for name in _REMOTE_ENV)
        or not HOST_OPTIONS.isdisjoint(options.names)
        or "plm_rsh_args" in options.values
    )


def _options(words: Sequence[Word]) -> _Options:
    """Read the launcher's options, up to the first word that may not be one."""
    names: list[str] = []
    values: list[Word] = []
    parameters: list[tuple[Word, Word]] = []
    at, clear = 1, True
    while at < len(words):
        word = words[at]
        if word is None or word[:1] != "-":
            clear = word is not None and (word[0:1] != "$" or "/" in word)
            break
        name = word.lstrip("-")
        count = value_count(name, words[at + 1 : at + 2])
        names.append(name.partition("=")[0])
        values.append(words[at + 1] if count and at + 1 < len(words) else None)
        if name in MCA_OPTIONS and at + 2 < len(words):
            parameters.append((words[at + 1], words[at + 2]))
        if count is None:
            clear = False
            at += 1
            break
        at += 1 + count
    return _Options(tuple(names), tuple(values), tuple(parameters), words[at:], clear)


def value_count(name: str, following: Sequence[Word]) -> int | None:
    """Return the number of an option's values; None if the next word may or may not be one."""
    if name in _TWO_VALUES:
        return 2
    if name in _SINGLE_VALUE:
        return 1
    if name in _NO_VALUE or "=" in name:
        return 0
    return 0 if following and (following[0] or "")[:1] == "-" else None
