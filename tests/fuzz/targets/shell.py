"""Scripts: their reading, and the insertions into them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import orjson

from tests.fuzz.dice import Dice
from tests.fuzz.laws.scripts import SHELL_LAWS, Scripted
from tests.fuzz.many import much_text
from tests.fuzz.pods import UID
from tests.fuzz.scripts import SHELLS, script_of
from tests.fuzz.target import Parts, Target
from tests.fuzz.targets.mutate import world_of
from tests.fuzz.worlds import FABRICS
from webhook.decide.shell.scripts import PROBLEMS

_SIZES = (4_000, 16_000, 32_000, 64_000)


def build(dice: Dice, *, large: bool) -> Parts:
    """Make a container's words: a shell with a script."""
    words = [*dice.pick(SHELLS)]
    words.append(much_text(dice, dice.pick(_SIZES)) if large else script_of(dice))
    env = [{"name": "OMPI_MCA_btl", "value": "tcp"}] if dice.one_in(2) else []
    return {"words": words, "env": env, "args": dice.one_in(4)}


def observe(parts: Parts) -> Scripted:
    """Call `/mutate` for a launcher pod whose container has these words."""
    words, split = parts["words"], parts["words"][:0] if parts["args"] else parts["words"]
    container: dict[str, Any] = {"name": "a", "env": parts["env"], "command": split}
    if parts["args"]:
        container["args"] = words
    pod = {
        "metadata": {
            "annotations": {"rdma.lab/enable": "true"},
            "labels": {"training.kubeflow.org/job-role": "launcher"},
        },
        "spec": {"containers": [container]},
    }
    request = {"uid": UID, "operation": "CREATE", "namespace": "lab", "object": pod}
    review = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}
    try:
        body = orjson.dumps(review)
    except orjson.JSONEncodeError:  # half a surrogate pair, which no body can contain
        body = b"{}"
    return Scripted(body, world_of(FABRICS[1], b"null"))


def codes(observed: Scripted) -> Iterable[str]:
    """Yield the number of launches, and whether the script was edited."""
    if not observed.decided:
        yield "not decided"
        return
    launches = observed.launches
    yield f"{min(len(launches), 3)} launches{' or more' if len(launches) > 2 else ''}"
    yield "edited" if observed.edited else "not edited"
    for launch in launches:
        if launch.run_by or launch.problem:
            yield f"behind {launch.run_by}" if launch.run_by else launch.problem


TARGET = Target(
    name="shell",
    build=build,
    observe=observe,
    laws=SHELL_LAWS,
    codes=codes,
    expected=frozenset(
        {"0 launches", "1 launches", "3 launches or more", "edited", "not edited", "behind sudo"}
        | set(PROBLEMS)
    ),
    weight=4,
)
