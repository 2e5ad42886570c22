"""The facts, assembled from the changes that the reflectors deliver.

Facts are immutable, so each batch of changes makes new ones; if nothing that decisions
read has changed, the old facts stay.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, assert_never

from webhook.kube.listing import Key
from webhook.kube.reflector import Change
from webhook.kube.watched_resources import Kind, Part
from webhook.model.facts import Facts, NamespaceFacts

#: The changes that a reflector delivered at once.
Batch = tuple[Kind, list[Change]]


class Assembly:
    """Namespaces, and what LimitRanges and quotas require in each."""

    def __init__(self) -> None:
        self.facts = Facts(complete=True)
        self._spaces: dict[str, NamespaceFacts] = {}
        self._rules: dict[str, dict[tuple[str, str], str]] = {}

    def take(self, batches: Iterable[Batch]) -> set[str]:
        """Make new facts from changes, and return the names of the namespaces that they change."""
        touched: set[str] = set()
        for kind, changes in batches:
            touched.update(self._keep(kind, key, kept) for key, kept in changes)
        before = self.facts.namespaces
        made = {name: self._facts_of(name) for name in touched}
        changed = {name for name, facts in made.items() if before.get(name) != facts}
        if changed:
            self.facts = replace(self.facts, namespaces=_with(before, made))
        return changed

    def _keep(self, kind: Kind, key: Key, kept: Any) -> str:
        """Keep or drop what is known about one object; return the namespace that it belongs to."""
        space, name = key
        match kind.part:
            case Part.NAMESPACE:
                _put(self._spaces, name, kept)
                return name
            case Part.RULE:
                self._rule(space, (kind.resource, name), kept)
                return space
            case None:
                raise LookupError(f"{kind.resource} are not part of the facts")
            case unknown:
                assert_never(unknown)

    def _rule(self, space: str, rule: tuple[str, str], says: str | None) -> None:
        rules = self._rules.setdefault(space, {})
        _put(rules, rule, says)
        if not rules:
            del self._rules[space]

    def _facts_of(self, name: str) -> NamespaceFacts | None:
        space, rules = self._spaces.get(name), self._rules.get(name)
        return space.under(rules.values()) if space and rules else space


def _put(held: dict[Any, Any], key: Any, value: Any) -> None:
    if value is None:
        held.pop(key, None)
    else:
        held[key] = value


def _with(
    before: Mapping[str, NamespaceFacts], made: Mapping[str, NamespaceFacts | None]
) -> dict[str, NamespaceFacts]:
    after = dict(before)
    for name, facts in made.items():
        _put(after, name, facts)
    return after
