"""The metrics of watched kinds, read from the reflectors at each scrape."""

from __future__ import annotations

import time
from collections.abc import Iterator
from functools import partial

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from webhook.kube.informers import Informers
from webhook.kube.reflector import Reflector


class Watches(Collector):
    """The metrics of each watched kind, read from the reflectors at each scrape."""

    def __init__(self) -> None:
        self._informers: list[Informers] = []

    def add(self, informers: Informers) -> None:
        """Add the kinds of these informers."""
        self._informers.append(informers)

    def remove(self, informers: Informers) -> None:
        """Remove the kinds of these informers."""
        self._informers.remove(informers)

    def collect(self) -> Iterator[Metric]:
        """Yield metrics of the current state, for a scrape."""
        contacts, objects, lists, failures = families = _watch_families()
        for informers in self._informers:
            for reflector in informers.reflectors:
                resource = [reflector.watched.resource]
                contacts.add_metric(resource, _last_contact(informers, reflector))
                objects.add_metric(resource, reflector.object_count)
                lists.add_metric(resource, reflector.list_count)
                failures.add_metric(resource, reflector.failures)
        if self._informers:
            yield from families


def _watch_families() -> tuple[
    GaugeMetricFamily, GaugeMetricFamily, CounterMetricFamily, CounterMetricFamily
]:
    gauge = partial(GaugeMetricFamily, labels=["resource"])
    counter = partial(CounterMetricFamily, labels=["resource"])
    return (
        gauge(
            "rdma_webhook_facts_last_contact_timestamp_seconds",
            "Time at which a watch last received something from the API server, 0 if never; its "
            "age is time() minus this.",
        ),
        gauge(
            "rdma_webhook_facts_objects",
            "Objects that the watch keeps in memory.",
        ),
        counter(
            "rdma_webhook_facts_lists",
            "Complete lists that have been read from the API server.",
        ),
        counter(
            "rdma_webhook_facts_failures",
            "Lists and watches that have failed.",
        ),
    )


def _last_contact(informers: Informers, reflector: Reflector) -> float:
    if reflector.last_contact is None:
        return 0.0
    return time.time() - (informers.clock() - reflector.last_contact)
