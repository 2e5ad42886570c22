"""`hcoll`: switch off Mellanox's hcoll, which hangs in pods and which NCCL jobs do not need.

`OMPI_MCA_coll_hcoll_enable=0` goes into the environment: Open MPI passes it to all ranks, and every
other program ignores it. `hcoll: auto` also inserts `-mca coll_hcoll_enable 0` directly after a
launcher that is certainly Open MPI's (launchers/openmpi.py); the flag overrides parameter files of
the image. The user wins: if either of the variables below is in env, nothing is written, and a
command that mentions hcoll or chooses collectives stays unchanged. hcoll, and SHARP under it, were
made for ranks without GPUs: these get a warning that explains how to keep both. A container without
a sign of MPI gets no warning.
"""

from __future__ import annotations

from webhook.decide.analysis import Launcher, Mutation, PodAnalysis, RdmaAccess, Target
from webhook.decide.draft import Draft
from webhook.decide.fabric_variables import CHECK_ENV_FROM, own_variables_like_evidence
from webhook.decide.launchers.commands import LauncherCommand
from webhook.decide.launchers.launches import launches_accepting_flag
from webhook.decide.launchers.openmpi import HCOLL_VARIABLE
from webhook.decide.launchers.roles import mentions_mpi
from webhook.decide.shell.argv import insert_after
from webhook.decide.shell.scripts import PROBLEMS, UNCLEAR
from webhook.model.decision import Reason
from webhook.model.pod import Path, dotted
from webhook.model.pod.container import env_item

ADDED = Reason(
    "Added",
    "HCOLL was switched off in env and, if `hcoll` is `auto`, in the Open MPI commands that the "
    "webhook can edit.",
    remedy="",
)
IN_CASE = Reason(
    "AddedInCase",
    "HCOLL was switched off in env as a precaution, although nothing suggests that Open MPI is "
    "used.",
    remedy="",
    reportable=False,
)
PRESENT = Reason(
    "Present", "The container's env already switches HCOLL off.", remedy="", reportable=False
)
HCOLL_SET = Reason(
    "HcollSet",
    "The container's environment already configures HCOLL, so the webhook does not switch HCOLL "
    "off.",
    remedy=(
        "If the job hangs, remove the variable that configures HCOLL; the webhook then "
        "switches HCOLL off."
    ),
)
ENV_FROM = Reason(
    "EnvFrom",
    f"envFrom may set {HCOLL_VARIABLE}, so the webhook did not add that variable.",
    remedy=CHECK_ENV_FROM,
)
NO_MPI = Reason(
    "NoMPI",
    f"envFrom may set {HCOLL_VARIABLE}, and nothing in the container suggests MPI, so "
    "the variable was not added.",
    remedy="",
    reportable=False,
)
CPU_RANKS = Reason(
    "CPURanks",
    "HCOLL, and with it SHARP, was switched off for ranks without GPUs. Such ranks may be faster "
    "with HCOLL and SHARP.",
    remedy=(
        "To keep HCOLL and SHARP on, set OMPI_MCA_coll_hcoll_enable=1 in the container's env. "
        "Otherwise, no action is needed."
    ),
)
OFF = Reason(
    "Off",
    "The configuration sets `hcoll: off`, which turns off this mutation, so the webhook leaves "
    "HCOLL as it is.",
    remedy="",
    reportable=False,
)
OTHER_USER = Reason(
    "OtherUser",
    "The launcher runs under a program such as sudo or su, which may clear the environment, and "
    "with it the variable that switches HCOLL off.",
    remedy="If the job hangs, add -mca coll_hcoll_enable 0 to the options of mpirun.",
)
SCRIPT_TOO_LARGE = Reason(
    "ScriptTooLarge",
    "A script that launches ranks was not edited: the pod's scripts exceed 32 KiB in total, have "
    "too many commands, or nest deeper than 64 levels.",
    remedy="If the job hangs, add -mca coll_hcoll_enable 0 to the options of mpirun.",
)
SCRIPT_UNCLEAR = Reason(
    "ScriptUnclear",
    "A script that launches ranks was not edited, since the webhook cannot tell how a shell would "
    "interpret it.",
    remedy="If the job hangs, add -mca coll_hcoll_enable 0 to the options of mpirun.",
)

FLAG = ("-mca", "coll_hcoll_enable", "0")
_HCOLL_VARIABLES = frozenset(
    {HCOLL_VARIABLE, "OMPI_MCA_coll"}
)  # the latter chooses the collectives
_ENV_ITEM = env_item(HCOLL_VARIABLE, "0")


def mutate(draft: Draft, analysis: PodAnalysis) -> None:
    """Switch hcoll off in every target and launcher."""
    switched = [target for target in analysis.targets if _switch_off(draft, analysis, target)]
    for launcher in analysis.launchers:
        _switch_off(draft, analysis, launcher)
    ranks = [target for target in switched if not (target.gpus or target.partial_gpu)]
    if ranks and not analysis.has_gpu:
        for rank in ranks:
            if _mentions_mpi(analysis, rank.path):
                message = f'HCOLL, and with it SHARP, is off; {HCOLL_VARIABLE}: "1" keeps both on'
                draft.warned(rank.name, CPU_RANKS, message)


def _switch_off(draft: Draft, analysis: PodAnalysis, container: Target | Launcher) -> bool:
    """Switch hcoll off in a container; return whether this call did it."""
    name, path = container.name, container.path
    policy = analysis.configuration.defaults.hcoll
    if policy == "off":
        draft.skipped(name, OFF, "the configuration has hcoll: off")
        return False
    if _env_may_configure_hcoll(analysis, path) and _env_configures_hcoll(draft, container):
        return False
    if analysis.containers[path].env_from:
        _leave(draft, analysis, container)
        return False
    launches = analysis.commands.launches(path)
    details = _flag(draft, analysis, path) if launches and policy == "auto" else ""
    draft.append((*path, "env"), env_item(HCOLL_VARIABLE, "0"))
    reason = ADDED if _mentions_mpi(analysis, path) else IN_CASE
    draft.applied(name, reason, f"set {HCOLL_VARIABLE}=0{details}")
    for launch in launches:
        if launch.run_by or (launch.problem and policy == "auto"):
            draft.warned(name, *_why_not_edited(launch))
    return True


def _leave(draft: Draft, analysis: PodAnalysis, container: Target | Launcher) -> None:
    """Skip a container whose envFrom may configure hcoll."""
    if not _mentions_mpi(analysis, container.path):
        draft.skipped(container.name, NO_MPI, NO_MPI.sentence)
        return
    draft.skipped(container.name, ENV_FROM, f"envFrom may set {HCOLL_VARIABLE}")
    message = f"HCOLL stays on; to switch it off, add {HCOLL_VARIABLE}=0 to env"
    draft.warned(container.name, ENV_FROM, message)


def _mentions_mpi(analysis: PodAnalysis, path: Path) -> bool:
    commands, env = analysis.commands, analysis.containers[path].env
    return mentions_mpi(analysis.original, path, commands, commands.text(path), env)


def _env_may_configure_hcoll(analysis: PodAnalysis, path: Path) -> bool:
    """Return whether the user's or the site's environment has a variable that configures hcoll."""
    site_variables = analysis.fabric.env.site_variables if analysis.fabric is not None else ()
    return any(
        name in _HCOLL_VARIABLES for name, _ in site_variables
    ) or not _HCOLL_VARIABLES.isdisjoint(analysis.containers[path].env)


def _env_configures_hcoll(draft: Draft, container: Target | Launcher) -> bool:
    """Return whether the environment already configures hcoll; if so, record the outcome."""
    name = container.name
    for item in draft.container(container.path).env_items:
        if item.get("name") in _HCOLL_VARIABLES:
            if item == _ENV_ITEM:
                draft.already(name, PRESENT, f"{HCOLL_VARIABLE}=0 is already set")
            else:
                draft.skipped(name, HCOLL_SET, f"kept your {item['name']}, which configures HCOLL")
            return True
    return False


def _flag(draft: Draft, analysis: PodAnalysis, path: Path) -> str:
    """Insert the flag after launchers of Open MPI; return the places, or the reason against it."""
    fabric = analysis.fabric
    ignored = own_variables_like_evidence(fabric) if fabric else frozenset[str]()
    names = [name for name in analysis.containers[path].env if name not in ignored]
    launches, refusal = launches_accepting_flag(analysis.commands, path, names)
    if launches:
        insert_flag(draft, path, launches)
        places = dict.fromkeys(dotted(launch.path) for launch in launches)
        return f", and {' '.join(FLAG)} in {', '.join(places)}"
    return refusal and f"; {' '.join(FLAG)} was not added, since {refusal}"


def insert_flag(draft: Draft, path: Path, launches: list[LauncherCommand]) -> None:
    """Insert the flag directly after the launchers' words; the commands must be unchanged."""
    scripts: dict[Path, list[int]] = {}
    for launch in launches:
        if launch.script_offset is not None:
            scripts.setdefault(launch.path, []).append(launch.script_offset)
        else:
            field, index = launch.path
            draft.insert((*path, field), int(index) + 1, *FLAG)
    for script_path, offsets in scripts.items():
        script = draft.get((*path, *script_path))
        draft.replace((*path, *script_path), insert_after(script, offsets, " " + " ".join(FLAG)))


def _why_not_edited(launch: LauncherCommand) -> tuple[Reason, str]:
    """Return the reason and a message for a launch that is not editable."""
    if launch.run_by:
        return (
            OTHER_USER,
            f"{launch.run_by} may clear env; add {' '.join(FLAG)} to mpirun yourself",
        )
    reason = SCRIPT_UNCLEAR if launch.problem == UNCLEAR else SCRIPT_TOO_LARGE
    return reason, f"{dotted(launch.path)} was not edited, since {PROBLEMS[launch.problem]}"


MUTATION = Mutation(
    name="hcoll",
    summary="switches HCOLL off in Open MPI",
    needs=RdmaAccess.NONE,
    reasons=(
        *(ADDED, IN_CASE, PRESENT, HCOLL_SET, ENV_FROM, NO_MPI, CPU_RANKS, OFF),
        *(OTHER_USER, SCRIPT_TOO_LARGE, SCRIPT_UNCLEAR),
    ),
    mutate=mutate,
    on_launchers=True,
)
