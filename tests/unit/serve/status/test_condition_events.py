from __future__ import annotations

from datetime import datetime

from webhook.kube.events import Notice
from webhook.serve.log import Log
from webhook.serve.metrics import Metrics
from webhook.serve.status.content import Condition, StatusUpdate
from webhook.serve.status.events import ATTEMPTS, SECONDS, ConditionEvents, event_conditions

USED = Condition("Active", True, "InUse", "The webhook uses this configuration (config a).")
OTHER = USED._replace(message="The webhook uses this configuration (config b).")
LAST_GOOD = Condition("Active", False, "LastGoodInUse", "The last good configuration stays.")
VALID = Condition("Valid", True, "Accepted", "There are no findings.")
BROKEN = Condition("Valid", False, "NotUsable", "spec.fabrics[0]: wrong")


class Replica:
    """A replica with conditions that a test sets, and the Events that it created."""

    def __init__(self, *conditions: Condition) -> None:
        self.conditions = conditions
        self.problem = ""
        self.attempts = 0
        self.created: list[tuple[str, str, str]] = []
        self.lost: list[str] = []
        self.source = ConditionEvents(lambda: self.conditions, self, "x", self.lost.append)  # type: ignore[arg-type]

    def create_about_configuration(self, notice: Notice, reporter: str, now: datetime) -> str:
        """Create an Event."""
        assert (reporter, notice.action, now.tzinfo is not None) == ("x", "Check", True)
        self.attempts += 1
        if not self.problem:
            self.created.append((notice.type, notice.reason, notice.note))
        return self.problem

    def observe(self, *conditions: Condition, looks: int = 2) -> list[tuple[str, str, str]]:
        """Let conditions last for some looks; return the Events of this time."""
        self.conditions = conditions
        before = len(self.created)
        for _ in range(looks):
            assert self.source.attempt() == SECONDS
        return self.created[before:]


def test_a_change_that_lasts_is_an_event() -> None:
    """It is created once, with the condition's reason and message."""
    replica = Replica()
    assert replica.observe(VALID, USED) == []
    refused = ("Warning", "NotUsable", "spec.fabrics[0]: wrong")
    kept = ("Warning", "LastGoodInUse", "The last good configuration stays.")
    assert replica.observe(BROKEN, LAST_GOOD, looks=5) == [refused, kept]
    assert replica.observe(VALID, OTHER) == [("Normal", "InUse", OTHER.message)]
    assert replica.observe(BROKEN, LAST_GOOD) == [refused, kept]


def test_another_configuration_is_an_event() -> None:
    """The condition was and is true: its message has the hash."""
    replica = Replica()
    replica.observe(USED)
    assert replica.observe(OTHER) == [("Normal", "InUse", OTHER.message)]


def test_a_start_is_no_change() -> None:
    """A replica reports then only problems."""
    assert Replica().observe(VALID, USED) == []
    assert Replica().observe(BROKEN) == [("Warning", "NotUsable", BROKEN.message)]


def test_a_passing_condition_is_no_event() -> None:
    """One look may be between two steps, and a configuration may be about to come into use."""
    replica = Replica()
    replica.observe(USED)
    assert replica.observe(LAST_GOOD, looks=1) == []
    assert replica.observe(Condition("Active", False, "ComesIntoUse", "…"), looks=3) == []
    assert replica.observe(USED) == []


def test_an_unknown_condition_is_no_event() -> None:
    """The condition itself shows it; what follows is a change again."""
    replica = Replica()
    called = Condition("Called", True, "Called", "…")
    missing = Condition("Called", False, "NoWebhookConfiguration", "…")
    replica.observe(called)
    assert replica.observe(Condition("Called", None, "NotReadable", "…")) == []
    assert replica.observe(missing) == [("Warning", "NoWebhookConfiguration", "…")]
    assert replica.observe(called) == [("Normal", "Called", "…")]


def test_a_failure_is_not_the_end() -> None:
    """An Event is tried again for a minute; then its loss is reported once, and the next is due."""
    replica = Replica()
    replica.problem = "cannot reach it"
    replica.observe(BROKEN, looks=ATTEMPTS)
    assert (replica.attempts, replica.lost) == (ATTEMPTS - 1, [])
    replica.problem = ""
    assert replica.observe(BROKEN, looks=1) == [("Warning", "NotUsable", BROKEN.message)]

    replica.problem = "cannot reach it"
    replica.observe(BROKEN._replace(message="again"), LAST_GOOD, looks=ATTEMPTS + 1)
    assert replica.lost == ["cannot reach it"]
    replica.source._waiting.clear()
    replica.problem = ""
    assert replica.observe(VALID, USED) == [("Normal", "InUse", USED.message)]


def test_a_defect_is_not_the_end() -> None:
    """The conditions may be wrong once."""
    replica = Replica()
    replica.source._conditions = lambda: [None]  # type: ignore[list-item]
    assert replica.source.attempt() == SECONDS
    assert replica.lost == ["internal error: AttributeError"]


def test_there_is_nothing_to_apply() -> None:
    """The Events are all that it has to report."""
    source = Replica().source
    source.apply(Metrics(), Log("info"))
    assert source.poll() is False


def test_conditions_of_an_object() -> None:
    """Each but `Ready`, which repeats another one, and whether all fabrics have nodes."""
    ready = Condition("Ready", True, "Ready", "Every replica uses this configuration.")
    rows = [{"name": name, "nodes": nodes} for name, nodes in (("a", 0), ("b", 1), ("c", 0))]
    without = "No node of these fabrics takes pods: a, c."
    assert [*event_conditions(StatusUpdate(1, (ready, VALID, USED), {"fabrics": rows}), "x")] == [
        VALID,
        USED,
        Condition("Nodes", False, "FabricWithoutNodes", without),
    ]
    (nodes,) = event_conditions(StatusUpdate(1, (), {"fabrics": rows[:2]}), "")
    assert nodes.message == "No node of fabric a takes pods."
    with_nodes = StatusUpdate(1, (), {"fabrics": rows[1:2]})
    unknown = StatusUpdate(1, (), {})
    for update in (with_nodes, unknown):
        (nodes,) = event_conditions(update, "")
        assert (nodes.type, nodes.holds, nodes.reason) == ("Nodes", True, "Nodes")


def test_the_absence_of_the_object_is_a_condition() -> None:
    """Its message is a sentence. It is none before the object has been looked for."""
    nothing = Condition("Active", False, "NothingInUse", "Apply one.")
    assert [*event_conditions(None, "apply one")] == [nothing]
    assert [*event_conditions(None, "")] == []
