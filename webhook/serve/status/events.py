"""Events about changes to the conditions, for `kubectl describe fabrics default`."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime

from webhook.kube.events import EventApi, Notice
from webhook.model.names import shortened_list
from webhook.serve.log import Log
from webhook.serve.metrics import Metrics
from webhook.serve.sources.periodic import Periodic
from webhook.serve.status.content import Condition, StatusUpdate

#: Reasons of conditions that are worth an Event, with its type. The policy
#: rdma-webhook-guard-events allows no others.
TYPES = {
    "InUse": "Normal",
    "NotUsable": "Warning",
    "LastGoodInUse": "Warning",
    "NothingInUse": "Warning",
    "FabricWithoutNodes": "Warning",
    "Called": "Normal",
    "NoWebhookConfiguration": "Warning",
    "SelectsTooLittle": "Warning",
    "SelectsTooMuch": "Warning",
    "OtherService": "Warning",
    "OtherCaBundle": "Warning",
    "NoLease": "Warning",
}
#: A reason that is replaced by another one within seconds.
_PASSING = "ComesIntoUse"
#: Seconds between two looks at the conditions, which limit the rate of Events.
SECONDS = 5.0
#: Attempts to create an Event: for a minute.
ATTEMPTS = 12
#: The maximum number of Events that wait, and of fabrics in an Event.
_WAITING, _MAX_FABRICS = 16, 20


def event_conditions(update: StatusUpdate | None, absence: str) -> Iterator[Condition]:
    """Yield conditions that may change with the object, and whether each fabric has nodes.

    `absence`: why there is no object; "" if that is not known. `Ready` follows from the others.
    """
    if update is None:
        if absence:
            message = f"{absence[0].upper()}{absence[1:]}."
            yield Condition("Active", False, "NothingInUse", message)
        return
    yield from (condition for condition in update.conditions if condition.type != "Ready")
    rows = update.fields.get("fabrics", ())
    without = [row["name"] for row in rows if not row["nodes"]]
    message = f"No node of fabric {''.join(without)} takes pods."
    if len(without) > 1:
        message = f"No node of these fabrics takes pods: {shortened_list(without, _MAX_FABRICS)}."
    yield Condition("Nodes", not without, "FabricWithoutNodes" if without else "Nodes", message)


class ConditionEvents:
    """A source that creates Events in a thread: one for each change that lasts.

    At the start of a replica, it reports only problems: nothing else has changed.
    """

    def __init__(
        self,
        conditions: Callable[[], Iterable[Condition]],
        event_api: EventApi,
        reporter: str,
        lost: Callable[[str], None],
    ) -> None:
        """Prepare.

        `reporter`: the name of this pod; `lost` is called with the reason for a missing Event.
        """
        self._conditions = conditions
        self._event_api = event_api
        self._reporter = reporter
        self._lost = lost
        #: By type: the conditions of the last look, and those that have been reported.
        self._seen: dict[str, Condition] = {}
        self._reported: dict[str, Condition] = {}
        self._waiting: deque[Notice] = deque(maxlen=_WAITING)
        self._failures = 0
        self._periodic = Periodic("condition-events", self.attempt)
        self.start, self.stop = self._periodic.start, self._periodic.stop

    def poll(self) -> bool:
        """Return False: there is nothing to apply."""
        return False

    def apply(self, metrics: Metrics, log: Log) -> None:
        """Do nothing."""

    def attempt(self) -> float:
        """Look for changes, and create their Events; never raises."""
        try:
            self._look()
        except Exception as error:  # noqa: BLE001 -- the thread must go on
            self._lost(f"internal error: {type(error).__name__}")
        self._create()
        return SECONDS

    def _look(self) -> None:
        seen, self._seen = self._seen, {item.type: item for item in self._conditions()}
        for condition in self._seen.values():
            reported = self._reported.get(condition.type)
            lasts = seen.get(condition.type) == condition and condition.reason != _PASSING
            if lasts and condition != reported:
                self._reported[condition.type] = condition
                self._report(condition, first=reported is None)

    def _report(self, condition: Condition, *, first: bool) -> None:
        kind = TYPES.get(condition.reason)
        if kind == "Warning" or (kind == "Normal" and not first):
            self._waiting.append(Notice(kind, condition.reason, "Check", condition.message))

    def _create(self) -> None:
        while self._waiting:
            problem = self._event_api.create_about_configuration(
                self._waiting[0], self._reporter, datetime.now(UTC)
            )
            self._failures = self._failures + 1 if problem else 0
            if 0 < self._failures < ATTEMPTS:
                return
            if problem:
                self._lost(problem)
            self._failures = 0
            self._waiting.popleft()
