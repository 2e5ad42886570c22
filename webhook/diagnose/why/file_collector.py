"""Gather what a list of objects says about the pods in it, as `kubectl get -o yaml` prints them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from webhook.admission.registration import webhooks_in
from webhook.diagnose.why.evidence import Gathered, Item, items_at, word_at
from webhook.errors import ShapeError
from webhook.model.fabric import Fabrics
from webhook.model.facts import Facts
from webhook.model.pod import MOST_OWNERS, at, controller_reference


def objects_of(value: Any) -> Iterator[Item]:
    """Yield the objects of a document, and those of a List one by one."""
    if not isinstance(value, dict):
        return
    kind = word_at(value, ("kind",))
    if kind.endswith("List") and isinstance(value.get("items"), list):
        for item in items_at(value, ("items",)):
            # The items of a typed list, such as PodList, have no kind.
            yield from objects_of({"kind": kind.removesuffix("List"), **item})
    else:
        yield value


def gathered_from(
    objects: Sequence[Item], namespace: str, fabrics: Fabrics | None
) -> list[Gathered]:
    """Gather what the objects say about each pod among them.

    `namespace` is that of pods that name none.
    """
    index = _Index(objects)
    pods = [_placed(one, namespace) for one in objects if one.get("kind") == "Pod"]
    facts = Facts().extended([one for one in objects if _is_fact(one)], namespace)
    return [index.gathered(pod, fabrics, facts) for pod in pods]


def _is_fact(item: Item) -> bool:
    """Return whether an object says something that a decision depends on, as a cluster has it."""
    try:
        Facts().extended([item], "")
    except ShapeError:
        return False
    return True


def _placed(pod: Item, namespace: str) -> Item:
    metadata = pod.get("metadata")
    if not isinstance(metadata, dict) or metadata.get("namespace"):
        return pod
    return {**pod, "metadata": {**metadata, "namespace": namespace}}


class _Index:
    """Objects by kind and name, and events by what they are about."""

    def __init__(self, objects: Sequence[Item]) -> None:
        self._named: dict[_Name, Item] = {}
        self._events: dict[_Name, list[Item]] = {}
        self._of_kind: dict[str, list[Item]] = {}
        for one in objects:
            kind = word_at(one, ("kind",))
            self._of_kind.setdefault(kind, []).append(one)
            if kind == "Event":
                self._events.setdefault(_regarding(one), []).append(one)
            else:
                self._named[_name(one)] = one

    def gathered(self, pod: Item, fabrics: Fabrics | None, facts: Facts) -> Gathered:
        """Return what is known about a pod."""
        home = word_at(pod, ("metadata", "namespace")) or "default"
        owners = tuple(self._owners(pod))
        about = [event for one in (pod, *owners) for event in self._events.get(_name(one), ())]
        configurations = self._of_kind.get("MutatingWebhookConfiguration")
        return Gathered(
            pod=pod,
            namespace=self._named.get(("Namespace", home)),
            owners=owners,
            events=in_order(about) if self._events else None,
            webhooks=webhooks_in(configurations) if configurations else None,
            nodes=tuple(self._of_kind.get("Node", ())) or None,
            fabrics=fabrics,
            facts=facts,
        )

    def _owners(self, item: Item) -> Iterator[Item]:
        for _ in range(MOST_OWNERS):
            reference = controller_reference(item)
            if reference is None:
                return
            key = word_at(reference, ("kind",)), word_at(reference, ("name",))
            found = self._named.get(key)
            if found is None:
                return
            yield found
            item = found


_Name = tuple[str, str]


def _name(item: Item) -> _Name:
    return word_at(item, ("kind",)), word_at(item, ("metadata", "name"))


def in_order(events: Iterable[Item]) -> tuple[Item, ...]:
    """Return events, oldest first."""
    return tuple(sorted(events, key=_time))


def _regarding(event: Item) -> _Name:
    regarding = at(event, ("involvedObject",)) or at(event, ("regarding",))
    return word_at(regarding, ("kind",)), word_at(regarding, ("name",))


def _time(event: Item) -> str:
    """Return when an event was last seen, as a time of the API server, which compares as text."""
    times = (
        word_at(event, path)
        for path in (("lastTimestamp",), ("eventTime",), ("metadata", "creationTimestamp"))
    )
    return next(filter(None, times), "")
