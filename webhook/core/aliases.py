"""Renaming an RDMA resource of another site to what the fabric calls it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from webhook.core.draft import Draft
from webhook.core.fabric import Fabric
from webhook.core.path import Path, dotted
from webhook.core.pod import Container, mapping
from webhook.core.quantity import parse
from webhook.core.scope import Target
from webhook.errors import ShapeError

SECTIONS = ("limits", "requests")


def aliases_among(names: Iterable[str], fabric: Fabric) -> dict[str, str]:
    """Return which of the names are aliases on this fabric, with the real name of each."""
    real = {alias: resource.name for resource in fabric.resources for alias in resource.aliases}
    return {name: real[name] for name in names if name in real} if real else {}


def strays(
    containers: Iterable[Container], targets: Iterable[Target], fabric: Fabric
) -> Iterator[tuple[str, str]]:
    """Yield (container, alias) where a container that is no target keeps an alias.

    Its pod waits for ever for a resource that no node here has.
    """
    ours = {target.path for target in targets}
    for one in containers:
        if one.path not in ours:
            limits = mapping(one.manifest, ("resources", "limits"), one.path)
            for alias in aliases_among(limits, fabric):
                yield one.name, alias


def rename(draft: Draft, path: Path, alias: str, real: str) -> None:
    """Rename in both sections of the resources at `path`, with the quantity.

    Where the real key is there too, the larger quantity counts. A request that is
    missing is the limit, as the API server will default it.
    """
    limits = mapping(draft.pod, (*path, "limits"))
    limit, real_limit = limits.get(alias), limits.get(real)
    for section in SECTIONS:
        amounts = mapping(draft.pod, (*path, section))
        if alias not in amounts and (limit is None or real not in amounts):
            continue
        amount = _larger(amounts.get(alias, limit), amounts.get(real, real_limit), (*path, section))
        if alias in amounts:
            draft.remove((*path, section, alias))
        if amount != amounts.get(real):
            draft.set((*path, section, real), amount)


def _larger(one: Any, other: Any, path: Path) -> Any:
    try:
        return one if other is None or parse(one) > parse(other) else other
    except ValueError as error:
        msg = f"{dotted(path)}: {error}"
        raise ShapeError(msg) from error
