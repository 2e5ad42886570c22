"""What a rule sees of the file, and how it answers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import wraps
from typing import NamedTuple

from webhook.config.findings import Severity
from webhook.config.model import FabricConfiguration, FabricEntry
from webhook.pod.path import Path

#: In these modes each pod sees its own device, whose name nobody knows before.
OWN_DEVICE = ("sr-iov", "host-device")


class Problem(NamedTuple):
    """What a rule found: where, and a sentence with the value and what would do."""

    path: Path
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """The parts of a file that could be read."""

    model: FabricConfiguration
    #: Where in the file each of the model's fabrics stands.
    positions: tuple[int, ...]
    #: Names of all fabrics of the file, also of those that could not be read.
    names: frozenset[str]

    def without(self, places: set[int]) -> Parts:
        """Leave out the fabrics at some positions of the file."""
        kept = {at: fabric for (_, at), fabric in self.fabrics() if at not in places}
        return Parts(
            model=self.model.model_copy(update={"fabrics": list(kept.values())}),
            positions=tuple(kept),
            names=self.names,
        )

    def fabrics(self) -> Iterator[tuple[tuple[str, int], FabricEntry]]:
        """Give each fabric with its path."""
        for position, fabric in zip(self.positions, self.model.fabrics, strict=True):
            yield ("fabrics", position), fabric


Check = Callable[[Parts], Iterable[Problem]]


class Rule(NamedTuple):
    """One rule; the first sentence of its function's docstring is its row in the reference."""

    severity: Severity
    check: Check
    #: It looks at values one by one, so it can do so in a fabric that has a wrong value elsewhere.
    alone: bool = False


def per_fabric(check: Callable[[FabricEntry], Iterable[Problem]]) -> Check:
    """Turn a rule over one fabric into one over the file."""

    @wraps(check)
    def over_all(parts: Parts) -> Iterator[Problem]:
        for home, fabric in parts.fabrics():
            for path, message in check(fabric):
                yield Problem((*home, *path), message)

    return over_all
