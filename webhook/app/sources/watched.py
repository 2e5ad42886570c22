"""The metrics of the watches, read from the reflectors at each scrape."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from operator import attrgetter

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from webhook.app.namespace_waits import Arrivals
from webhook.kube.feed import Feed
from webhook.kube.reflector import Reflector

_HEARD = (
    "facts_last_contact_timestamp_seconds",
    (
        "Time at which a watch last received something from the API server, 0 if never; its age "
        "is time() minus this."
    ),
)
_OBJECTS = ("facts_objects", "Objects that the watch keeps in memory.")
_LISTS = ("facts_lists", "Complete lists that have been read from the API server.")
_FAILURES = ("facts_failures", "Lists and watches that have failed.")


class Watches(Collector):
    """The metrics of each watched kind, and of requests that waited for a namespace."""

    def __init__(self, feed: Feed, arrivals: Arrivals) -> None:
        self._feed, self._arrivals = feed, arrivals

    def collect(self) -> Iterator[Metric]:
        """Make metrics of the current state, for a scrape."""
        yield self._each(GaugeMetricFamily, *_HEARD, self._time_of)
        yield self._each(GaugeMetricFamily, *_OBJECTS, attrgetter("objects"))
        yield self._each(CounterMetricFamily, *_LISTS, attrgetter("lists"))
        yield self._each(CounterMetricFamily, *_FAILURES, attrgetter("failures"))
        yield self._waits()

    def _each(
        self,
        family: type[GaugeMetricFamily | CounterMetricFamily],
        name: str,
        meaning: str,
        value: Callable[[Reflector], float],
    ) -> Metric:
        made = family(f"rdma_webhook_{name}", meaning, labels=["resource"])
        for one in self._feed.reflectors:
            made.add_metric([one.kind.resource], value(one))
        return made

    def _time_of(self, reflector: Reflector) -> float:
        if reflector.heard is None:
            return 0.0
        return time.time() - (self._feed.clock() - reflector.heard)

    def _waits(self) -> Metric:
        waits = CounterMetricFamily(
            "rdma_webhook_namespace_waits",
            "Requests that waited for a namespace that was not known yet, by result.",
            labels=["came"],
        )
        for came, count in self._arrivals.counts.items():
            waits.add_metric([str(came).lower()], count)
        return waits
