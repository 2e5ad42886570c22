"""`hcoll`: switches off Mellanox's hcoll, which hangs in pods and which NCCL jobs do not need.

`OMPI_MCA_coll_hcoll_enable=0` goes into the environment: Open MPI hands it to all ranks, and
every other program ignores it. `hcoll: auto` also writes `-mca coll_hcoll_enable 0` directly
behind a launcher that is Open MPI's for sure (core/openmpi.py), which beats parameter files
of the image. The user wins: with either variable below in env nothing is written, and a
command that speaks of hcoll or of collectives keeps its words.
"""

from __future__ import annotations

from webhook.core.commands import Launch, env_names, launches_of, text_of
from webhook.core.decision import Reason
from webhook.core.draft import Draft
from webhook.core.environment import entry, has_env_from
from webhook.core.openmpi import SWITCH, judge
from webhook.core.path import Path, dotted
from webhook.core.pod import items, mapping
from webhook.core.scope import Launcher, Mutation, Needs, Scope, Target
from webhook.core.shell import TOO_LARGE, insert_after

ADDED = Reason("Added", "hcoll is switched off in env, and in commands that are Open MPI's.")
PRESENT = Reason("Present", "The environment switches hcoll off already.", quiet=True)
USER_VALUE = Reason("UserValue", "The user's own environment settles hcoll.")
ENV_FROM = Reason("EnvFrom", "envFrom may hold the variable, so nothing is written.")
OFF = Reason("Off", "The configuration says hcoll: off.", quiet=True)
OTHER_USER = Reason("OtherUser", "The launcher runs behind sudo or su, which may clear env.")
SCRIPT_TOO_LARGE = Reason("ScriptTooLarge", "A launching script is too large to be parsed.")

_FLAG = ("-mca", "coll_hcoll_enable", "0")
_SETTLING = (SWITCH, "OMPI_MCA_coll")  # the second one chooses the collectives


def mutate(draft: Draft, scope: Scope) -> None:
    """Switch hcoll off in every target and launcher."""
    for target in scope.targets:
        _switch_off(draft, scope, target)
    for launcher in scope.launchers:
        _switch_off(draft, scope, launcher)


def _switch_off(draft: Draft, scope: Scope, container: Target | Launcher) -> None:
    name, path = container.name, container.path
    if scope.fabrics.defaults.hcoll == "off":
        draft.skipped(name, OFF, "the configuration says hcoll: off")
        return
    for item in items(draft.pod, (*path, "env")):
        if item.get("name") in _SETTLING:
            if item == _ENTRY:
                draft.already(name, PRESENT, f"{SWITCH}=0 is there already")
            else:
                draft.skipped(name, USER_VALUE, f"kept your {item['name']}, which settles hcoll")
            return
    manifest = mapping(draft.pod, path)
    if "envFrom" in manifest and has_env_from(draft.pod, path):
        draft.skipped(name, ENV_FROM, f"envFrom may hold {SWITCH}")
        line = f'{{name: {SWITCH}, value: "0"}}'
        draft.warned(name, ENV_FROM, f"hcoll stays on; put into env: {line}")
        return
    launches = launches_of(draft.pod, manifest)
    flagged = ""
    if launches and scope.fabrics.defaults.hcoll == "auto":
        flagged = _flag(draft, scope, path, launches)
    draft.append((*path, "env"), entry(SWITCH, "0"))
    draft.applied(name, ADDED, f"set {SWITCH}=0{flagged}")
    for launch in launches:
        _warn(draft, name, launch)


_ENTRY = entry(SWITCH, "0")


def _warn(draft: Draft, name: str, launch: Launch) -> None:
    if launch.behind == TOO_LARGE:
        message = f"{dotted(launch.path)} is too large to be parsed: no flag was added to it"
        draft.warned(name, SCRIPT_TOO_LARGE, message)
    elif launch.behind:
        message = f"{launch.behind} may clear env: give mpirun {' '.join(_FLAG)} yourself"
        draft.warned(name, OTHER_USER, message)


def _flag(draft: Draft, scope: Scope, path: Path, launches: tuple[Launch, ...]) -> str:
    """Add the flag to the launchers that are Open MPI's for sure; tell where."""
    manifest = mapping(draft.pod, path)
    text = text_of(manifest)
    if _settled(text, launches):
        return ""
    # The site's variables may be ours, of this pass or of an earlier one.
    site = {name for name, _ in scope.fabric.env.site} if scope.fabric else set[str]()
    names = env_names(manifest) - site
    chosen = [launch for launch in launches if not launch.behind and _is_open(launch, names, text)]
    _insert(draft, path, chosen)
    where = dict.fromkeys(dotted(launch.path) for launch in chosen)
    return f", and {' '.join(_FLAG)} in {', '.join(where)}" if where else ""


def _is_open(launch: Launch, names: frozenset[str], text: str) -> bool:
    verdict = judge(launch.front, launch.words, names, text)
    return bool(verdict.proof) and not verdict.obstacle


def _settled(text: str, launches: tuple[Launch, ...]) -> bool:
    """Whether the command speaks of hcoll outside of launchers' words: an export, say."""
    if "hcoll" not in text and "HCOLL" not in text:
        return False
    words = [word for launch in launches for word in launch.words if word]
    return "HCOLL" in text or text.count("hcoll") > sum(word.count("hcoll") for word in words)


def _insert(draft: Draft, path: Path, launches: list[Launch]) -> None:
    scripts: dict[Path, list[int]] = {}
    for launch in launches:
        if launch.end is not None:
            scripts.setdefault(launch.path, []).append(launch.end)
        else:
            field, index = launch.path
            draft.insert((*path, field), int(index) + 1, *_FLAG)
    for where, ends in scripts.items():
        script = draft.get((*path, *where))
        draft.replace((*path, *where), insert_after(script, ends, " " + " ".join(_FLAG)))


MUTATION = Mutation(
    name="hcoll",
    summary="switches off Open MPI's hcoll",
    needs=Needs.NOTHING,
    reasons=(ADDED, PRESENT, USER_VALUE, ENV_FROM, OFF, OTHER_USER, SCRIPT_TOO_LARGE),
    mutate=mutate,
    on_launchers=True,
)
