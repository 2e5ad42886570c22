"""Rename an RDMA resource of another site to the fabric's name for it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from operator import itemgetter
from typing import Any

from webhook.decide.draft import Draft
from webhook.decide.scope import Target
from webhook.errors import ShapeError
from webhook.model.fabric import Fabric
from webhook.model.path import Path, dotted
from webhook.model.pod import Container, mapping
from webhook.model.quantity import amount, equal

SECTIONS = ("limits", "requests")


def aliases_of(fabric: Fabric) -> dict[str, str]:
    """Return the aliases of this fabric's resources, each with the real name."""
    return {alias: resource.name for resource in fabric.resources for alias in resource.aliases}


def strays(
    containers: Iterable[Container], targets: Iterable[Target], aliases: Mapping[str, str]
) -> Iterator[tuple[str, str]]:
    """Yield (container, alias) for each alias in a container that is not a target.

    Such an alias is not renamed, so the pod waits forever for a resource that no node here has.
    """
    if not aliases:
        return
    ours = {target.path for target in targets}
    for one in containers:
        if one.path not in ours:
            limits = mapping(one.manifest, ("resources", "limits"), one.path)
            for alias in limits:
                if alias in aliases:
                    yield one.name, alias


def rename(draft: Draft, path: Path, alias: str, real: str) -> None:
    """Rename an alias in both sections of the resources at `path`, and keep its quantity.

    If either section has the real name too, each section that has one of the names gets the
    largest quantity found, since limits and requests of such a resource must be equal.
    """
    sections = {section: mapping(draft.pod, (*path, section)) for section in SECTIONS}
    merging = any(real in amounts for amounts in sections.values())
    largest = _largest(sections, (real, alias), path) if merging else None
    for section, amounts in sections.items():
        if alias not in amounts and not (merging and real in amounts):
            continue
        quantity = largest if merging else amounts[alias]
        unchanged = real in amounts and equal(amounts[real], quantity)
        if alias in amounts:
            draft.remove((*path, section, alias))
        if not unchanged:
            draft.set((*path, section, real), quantity)


def _largest(sections: dict[str, dict[str, Any]], names: Iterable[str], path: Path) -> Any:
    """Return the largest quantity; of equal ones, the first."""
    found: list[tuple[int, Any]] = []
    for name in names:
        for section, amounts in sections.items():
            if name in amounts:
                try:
                    found.append((amount(amounts[name]), amounts[name]))
                except ValueError as error:
                    raise ShapeError(f"{dotted((*path, section, name))}: {error}") from error
    return max(found, key=itemgetter(0))[1]
