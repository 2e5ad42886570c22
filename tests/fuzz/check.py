"""Run one case, and return the law that it breaks, if any."""

from __future__ import annotations

import faulthandler
import multiprocessing
import traceback
from typing import NamedTuple

from tests.fuzz.dice import Dice
from tests.fuzz.laws.broken import BrokenLawError
from tests.fuzz.target import Parts, Target
from tests.fuzz.targets import fabric_files, mutate, shell, validate, workloads


class Violation(NamedTuple):
    """A broken law; two cases with the same law and the same place are one finding."""

    law: str
    place: str
    message: str

    def same_as(self, other: Violation | None) -> bool:
        """Return whether it is the same finding."""
        return other is not None and (self.law, self.place) == (other.law, other.place)


class Checked(NamedTuple):
    """The reason codes that a case reached, and the law that it broke."""

    codes: tuple[str, ...]
    violation: Violation | None


_ALL = (mutate.TARGET, shell.TARGET, workloads.TARGET, fabric_files.TARGET, validate.TARGET)
TARGETS = {target.name: target for target in _ALL}
_DRAWN = tuple(name for name, target in TARGETS.items() for _ in range(target.weight))
#: One in this many cases is large.
LARGE = 200
#: The memory of one in this many cases is measured, and of a quarter of those over so many bytes,
#: since that takes as long as a hundred cases.
_MEMORY_MEASURED, _HEAVY = 256, 16_384


def make(seed: int, number: int, only: str = "") -> tuple[Target, Parts]:
    """Make the case with that number, of the target `only` if it is set."""
    dice = Dice(seed, number)
    name = dice.pick(_DRAWN)
    target = TARGETS[only or name]
    return target, target.build(dice, large=number % LARGE == LARGE - 1)


def check(target: Target, parts: Parts, number: int = 0) -> Checked:
    """Run a case; an exception of the real code breaks the law `nothing_is_raised`."""
    law = "nothing_is_raised"
    try:
        observed = target.observe(parts)
        is_heavy = observed.size > _HEAVY and number // LARGE % 4 == 0
        observed.measures_memory = number % _MEMORY_MEASURED == 0 or is_heavy
        for check_law in target.laws:
            law = check_law.__name__
            check_law(observed)
        codes = tuple(target.codes(observed))
    except BrokenLawError as error:
        return Checked((), Violation(law, error.place, str(error)))
    except Exception as error:  # noqa: BLE001 -- a finding, whatever it is
        return Checked((), Violation(law, _place(error), f"{type(error).__name__}: {error}"))
    return Checked(codes, None)


def _place(error: Exception) -> str:
    """Return the error and the innermost function of our code that it passed through."""
    frames = traceback.extract_tb(error.__traceback__)
    ours = [f"{frame.filename.rpartition('/webhook/')[2]}:{frame.name}" for frame in frames]
    inner = [place for place in ours if not place.startswith("/")] or ours
    return f"{type(error).__name__} in {inner[-1]}"


SURVIVES = "the_process_survives"


def check_apart(target: Target, parts: Parts, seconds: float) -> Violation | None:
    """Run a case in a separate process, which it may kill or keep busy forever."""
    process = multiprocessing.get_context("fork").Process(target=_alone, args=(target, parts))
    process.start()
    process.join(seconds)
    if process.is_alive():
        process.kill()
        process.join()
        return Violation(SURVIVES, "time", f"not done after {seconds:.0f} s")
    if process.exitcode:
        return Violation(SURVIVES, f"exit {process.exitcode}", f"exit code {process.exitcode}")
    return None


def _alone(target: Target, parts: Parts) -> None:
    faulthandler.disable()
    check(target, parts)
