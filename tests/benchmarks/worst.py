"""The CPU time to decide on the worst pod of 1 MiB, without parsing, found by hill climbing.

A pod is a mixture of the families of tests/families.py, each grown to a share of the limits and
of the bytes. The search takes the slowest of many mixtures, changes it, and keeps each change that
makes it slower. Its seed is fixed, so two runs try the same pods as long as their times agree on
which is slower.
"""

from __future__ import annotations

import gc
import json
import random
import re
import time
from typing import Any

from tests.benchmarks.figures import Row, figure_text
from tests.families import FAMILIES, LONG, PER_CONTAINER, busy_decision_input
from webhook.decide import decide
from webhook.decide.analysis import DecisionInput
from webhook.decide.limits import MAX_CONTAINERS, MAX_ENTRIES

SEED = 11
BYTES = 2**20
GOAL = 0.050
_FIRST = 40  # mixtures at the start, besides each family by itself
_STEPS = 120
#: The entries of all families of a mixture together, with room for their names' own.
_ENTRIES = MAX_ENTRIES - 200

Mixture = dict[str, float]


def run() -> list[Row]:
    """Search, and return the row of the slowest pod found."""
    decision_input, chance = busy_decision_input(), random.Random(SEED)
    names = [*FAMILIES, *LONG]
    timed = [_timed({name: 1.0}, decision_input) for name in names]
    timed += [_timed(_mixture(names, chance), decision_input) for _ in range(_FIRST)]
    seconds, mixture = max(timed, key=lambda candidate: candidate[0])
    for _ in range(_STEPS):
        seconds, mixture = max(
            (seconds, mixture),
            _timed(_changed(mixture, names, chance), decision_input),
            key=lambda candidate: candidate[0],
        )
    seconds, _ = min(
        (_timed(mixture, decision_input) for _ in range(5)), key=lambda candidate: candidate[0]
    )
    parts = ", ".join(sorted(mixture, key=mixture.__getitem__, reverse=True)[:3])
    title = f"decide, the slowest pod of 1 MiB that a search found ({parts})"
    milliseconds, goal = seconds * 1000, GOAL * 1000
    measured = f"{figure_text(milliseconds, goal, 0)} ms"
    return [Row(title, measured, f"<= {goal:.0f} ms", milliseconds <= goal)]


def _mixture(names: list[str], chance: random.Random) -> Mixture:
    return {name: chance.random() for name in chance.sample(names, chance.randint(2, 8))}


def _changed(mixture: Mixture, names: list[str], chance: random.Random) -> Mixture:
    """Add a family, remove one, or change the share of one."""
    changed = dict(mixture)
    changed[chance.choice(names)] = chance.random()
    if len(changed) > 2 and chance.random() < 0.5:
        del changed[chance.choice(list(changed))]
    return changed


def _timed(mixture: Mixture, decision_input: DecisionInput) -> tuple[float, Mixture]:
    """Return the CPU seconds of the mixture, with short names or long ones: the larger time."""
    short = _written(mixture)
    return max(
        _seconds(short, decision_input), _seconds(_stretched(short), decision_input)
    ), mixture


def _seconds(written: str, decision_input: DecisionInput) -> float:
    manifest = json.loads(written)
    gc.collect()
    start = time.thread_time()
    decide(manifest, decision_input)
    return time.thread_time() - start


def _stretched(written: str) -> str:
    """Lengthen the numbered names so that together they fill the remaining bytes."""
    names = len(_NUMBERED.findall(written))
    letters = (BYTES - len(written)) // names if names else 0
    return _NUMBERED.sub(lambda match: match[0] + "x" * letters, written)


#: `a17`, `site.lab/17`: the names that families number, except names of resources for GPUs.
_NUMBERED = re.compile(r"(?<=[\"/])[a-zé_-]{0,4}[0-9]+(?=\")")


def _written(mixture: Mixture) -> str:
    """Write the largest pod of the mixture within the limits and the bytes."""
    size = 1.0
    while True:
        pod = _merged(mixture, size)
        written = json.dumps(pod, separators=(",", ":"))
        if len(written) <= BYTES:
            return written
        size *= 0.9 * BYTES / len(written)


def _merged(mixture: Mixture, size: float) -> dict[str, Any]:
    total = sum(mixture.values())
    listed = sum(share for name, share in mixture.items() if name in FAMILIES)
    pod: dict[str, Any] = {}
    for name, share in mixture.items():
        if name in FAMILIES:
            part = FAMILIES[name](max(PER_CONTAINER, int(size * _ENTRIES * share / listed)))
        else:
            part = LONG[name](int(size * BYTES / 40 * share / total))
        _join(pod, part)
    containers = pod["spec"]["containers"]
    del containers[MAX_CONTAINERS - len(pod["spec"].get("initContainers", ())) :]
    return pod


def _join(into: dict[str, Any], other: dict[str, Any]) -> None:
    """Merge one pod's fields into another: lists grow, and existing values stay."""
    for key, value in other.items():
        if key not in into:
            into[key] = value
        elif isinstance(value, dict) and isinstance(into[key], dict):
            _join(into[key], value)
        elif isinstance(value, list) and isinstance(into[key], list):
            into[key] += value
