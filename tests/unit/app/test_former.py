from __future__ import annotations

from typing import NamedTuple

from tests.builders import V100, pod
from webhook.app.former import KEPT, MOST, Former
from webhook.app.state import State
from webhook.decision.facts import Facts
from webhook.fabric.records import Fabrics, index


class Kept(NamedTuple):
    """A value with a configuration."""

    fabrics: Fabrics


def kept(number: int) -> Kept:
    """Make a value whose hash is a number of twelve digits."""
    return Kept(index((V100,), config_hash=f"{number:012}"))


class Clock:
    """A clock that a test sets."""

    now = 100.0

    def __call__(self) -> float:
        """Return the time."""
        return self.now


def test_a_replaced_configuration_is_kept_for_a_minute() -> None:
    """Counted from its replacement; then it is gone."""
    clock = Clock()
    former = Former[Kept](clock)
    one = kept(1)
    former.replaced(one)
    clock.now += KEPT
    assert former.get("000000000001") is one
    clock.now += 0.1
    assert former.get("000000000001") is None
    assert former.get("") is None


def test_the_youngest_are_kept() -> None:
    """Of more than 32 in a minute, the oldest is forgotten; one that came back counts anew."""
    former = Former[Kept](Clock())
    for number in range(MOST):
        former.replaced(kept(number))
    former.replaced(kept(0))
    former.replaced(kept(MOST))
    found = [number for number in range(MOST + 1) if former.get(f"{number:012}")]
    assert found == [0, *range(2, MOST + 1)]


def test_old_ones_do_not_stay_in_memory() -> None:
    """What cannot be asked for any more is dropped when the next one comes."""
    clock = Clock()
    former = Former[Kept](clock)
    former.replaced(kept(1))
    clock.now += KEPT + 1
    former.replaced(kept(2))
    assert [*former._kept] == ["000000000002"]


def stated(config: str) -> dict[str, object]:
    """Make a pod with a status of this configuration."""
    status = f'{{"rdma":"yes","because":"Equipped","fabric":null,"applied":[],"config":"{config}"}}'
    return pod(annotations={"rdma.lab/status": status})


class Configured:
    """A state, and the hash of the configuration that it chooses for a pod."""

    def __init__(self) -> None:
        self.clock = Clock()
        self.state = State(self.clock)

    def use(self, number: int) -> None:
        """Configure it."""
        self.state.configure(self.state.prepare(kept(number).fabrics))

    def chosen(self, config: str = "") -> str | None:
        """Return the hash for a pod whose status names `config`."""
        asked = stated(config) if config else pod()
        context = self.state.context_for("lab", asked)
        return context.fabrics.config_hash.lstrip("0") if context else None


def test_a_pod_is_decided_with_the_configuration_of_its_first_call() -> None:
    """If that was replaced in the last minute; all others with the one in use."""
    at = Configured()
    assert at.chosen() is None
    at.use(1)
    at.use(2)
    assert at.chosen() == "2"
    assert at.chosen("000000000001") == "1"
    assert at.chosen("000000000002") == "2"
    assert at.chosen("00000000000f") == "2"
    at.clock.now += KEPT + 1
    assert at.chosen("000000000001") == "2"


def test_without_a_configuration_only_second_calls_are_decided() -> None:
    """A pod that was begun before the object was deleted is not lost."""
    at = Configured()
    at.use(1)
    at.state.unconfigure()
    assert at.chosen() is None
    assert at.chosen("000000000001") == "1"
    assert at.chosen("000000000002") is None


def test_a_configuration_that_is_about_to_come_into_use_is_known() -> None:
    """Another replica may use it already; only its own pods are decided with it, until it does."""
    at = Configured()
    at.state.expect(at.state.prepare(kept(2).fabrics))
    assert (at.chosen(), at.chosen("000000000002")) == (None, "2")
    at.use(1)
    assert (at.chosen(), at.chosen("000000000002")) == ("1", "2")
    at.use(2)
    at.use(3)
    assert (at.chosen(), at.chosen("000000000002")) == ("3", "2")
    at.clock.now += KEPT + 1
    assert at.chosen("000000000002") == "3"


def test_a_configuration_comes_into_use_with_today_s_namespaces() -> None:
    """It was prepared some seconds ago, and namespaces have changed since."""
    at = Configured()
    prepared = at.state.prepare(kept(2).fabrics)
    at.state.expect(prepared)
    space = {"kind": "Namespace", "metadata": {"name": "lab", "annotations": {"a": "b"}}}
    at.state.learn(Facts.from_objects([space]))
    at.state.configure(prepared)
    context = at.state.context_for("lab", pod())
    assert context is not None
    assert context.namespace.annotations == {"a": "b"}


def test_a_configuration_that_comes_back_is_the_one_in_use() -> None:
    """Not the one that was kept: its facts may be older."""
    at = Configured()
    at.use(1)
    at.use(2)
    at.use(1)
    now = at.state.snapshot
    context = at.state.context_for("lab", stated("000000000001"))
    assert now is not None
    assert context is not None
    assert context.inventory is now.inventory


def test_a_configuration_that_is_read_again_is_no_former_one() -> None:
    """Only its warnings, or the time of its last change, may be others."""
    at = Configured()
    at.use(1)
    at.use(1)
    at.clock.now += KEPT
    at.use(2)
    at.clock.now += KEPT
    assert at.chosen("000000000001") == "1"
    at.clock.now += 1
    assert at.chosen("000000000001") == "2"


def test_a_former_configuration_sees_today_s_namespaces() -> None:
    """Only the fabrics, and what depends on them, are those of the first call."""
    at = Configured()
    at.use(1)
    at.use(2)
    space = {"kind": "Namespace", "metadata": {"name": "lab", "annotations": {"a": "b"}}}
    at.state.learn(Facts.from_objects([space]))
    context = at.state.context_for("lab", stated("000000000001"))
    assert context is not None
    assert context.namespace.annotations == {"a": "b"}
    at.state.unconfigure()
    context = at.state.context_for("lab", stated("000000000001"))
    assert context is not None
    assert context.namespace.annotations == {"a": "b"}
