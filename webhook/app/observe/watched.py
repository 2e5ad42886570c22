"""The metrics of all watches, read from the reflectors at each scrape."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from operator import attrgetter

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

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
    """The metrics of each watched kind."""

    def __init__(self, feeds: Iterable[Feed] = ()) -> None:
        self._feeds = [*feeds]

    def add(self, feed: Feed) -> None:
        """Show the kinds of this feed, too."""
        self._feeds.append(feed)

    def remove(self, feed: Feed) -> None:
        """Show the kinds of this feed no more."""
        self._feeds.remove(feed)

    def collect(self) -> Iterator[Metric]:
        """Make metrics of the current state, for a scrape."""
        if self._feeds:
            yield self._each(GaugeMetricFamily, *_HEARD, _time_of)
            yield self._each(GaugeMetricFamily, *_OBJECTS, _plain(attrgetter("objects")))
            yield self._each(CounterMetricFamily, *_LISTS, _plain(attrgetter("lists")))
            yield self._each(CounterMetricFamily, *_FAILURES, _plain(attrgetter("failures")))

    def _each(
        self,
        family: type[GaugeMetricFamily | CounterMetricFamily],
        name: str,
        meaning: str,
        value: Callable[[Feed, Reflector], float],
    ) -> Metric:
        made = family(f"rdma_webhook_{name}", meaning, labels=["resource"])
        for feed in self._feeds:
            for one in feed.reflectors:
                made.add_metric([one.kind.resource], value(feed, one))
        return made


def _plain(value: Callable[[Reflector], float]) -> Callable[[Feed, Reflector], float]:
    return lambda _, reflector: value(reflector)


def _time_of(feed: Feed, reflector: Reflector) -> float:
    if reflector.heard is None:
        return 0.0
    return time.time() - (feed.clock() - reflector.heard)
