"""The parts of the file that a rule gets, and the violations that it returns."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import wraps
from typing import NamedTuple

from webhook.config.model import FabricConfigurationSpec, FabricEntry
from webhook.model.finding import Code, Level
from webhook.model.pod import Path


class Violation(NamedTuple):
    """A violation of a rule: its path, and what is wrong there, with the value."""

    path: Path
    text: str
    #: What to do; "" for the remedy of the rule.
    remedy: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ParsedSpec:
    """The parts of a file that could be read."""

    model: FabricConfigurationSpec
    #: The index of each of the model's fabrics in the file.
    positions: tuple[int, ...]
    #: The names of all fabrics of the file, including those that could not be read.
    names: frozenset[str]
    #: Whether `defaults.fabric` is invalid, so that the default is not known.
    default_unsure: bool = False

    def without(self, indexes: set[int]) -> ParsedSpec:
        """Return a copy without the fabrics at these indexes of the file."""
        remaining = {index: fabric for (_, index), fabric in self.fabrics() if index not in indexes}
        return replace(
            self,
            model=self.model.model_copy(update={"fabrics": list(remaining.values())}),
            positions=tuple(remaining),
        )

    def fabrics(self) -> Iterator[tuple[tuple[str, int], FabricEntry]]:
        """Yield each fabric with its path."""
        for position, fabric in zip(self.positions, self.model.fabrics, strict=True):
            yield ("fabrics", position), fabric


Check = Callable[[ParsedSpec], Iterable[Violation]]


class Rule(NamedTuple):
    """A rule; the first sentence of its function's docstring is its row in the reference."""

    #: "error" or "warning".
    level: Level
    check: Check
    #: Of its findings: the function's name in CamelCase, as in RoceNetworks.
    code: Code
    #: Whether it also runs on fabrics with other errors, since it compares no fields with others.
    tolerates_other_errors: bool = False


def _code(check: Check, remedy: str) -> Code:
    name = "".join(word.capitalize() for word in check.__name__.split("_"))
    return Code(name, " ".join((check.__doc__ or "").partition("\n\n")[0].split()), remedy)


def file_rule(
    level: Level, remedy: str, *, tolerates_other_errors: bool = False
) -> Callable[[Check], Rule]:
    """Make a function of a file's parts a rule; `webhook.config.rules` finds it in its module.

    `remedy` is an imperative sentence, which a violation may replace by a more exact one.
    """
    return lambda check: Rule(level, check, _code(check, remedy), tolerates_other_errors)


def rule(
    level: Level, remedy: str, *, tolerates_other_errors: bool = False
) -> Callable[[Callable[[FabricEntry], Iterable[Violation]]], Rule]:
    """Make a function of one fabric a rule for all fabrics of a file."""
    as_rule = file_rule(level, remedy, tolerates_other_errors=tolerates_other_errors)
    return lambda check: as_rule(_per_fabric(check))


def _per_fabric(check: Callable[[FabricEntry], Iterable[Violation]]) -> Check:
    """Turn a check of one fabric into a check of the whole file."""

    @wraps(check)
    def over_all(spec: ParsedSpec) -> Iterator[Violation]:
        for parent_path, fabric in spec.fabrics():
            for violation in check(fabric):
                yield violation._replace(path=(*parent_path, *violation.path))

    return over_all
