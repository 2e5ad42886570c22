from __future__ import annotations

import os
import platform
import re
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from difflib import unified_diff
from pathlib import Path

import pytest

from certs.clock import delays
from tests.unit.kube.cluster import NAMESPACES, Cluster, Stream, namespace
from webhook import __version__
from webhook.errors import ClusterError
from webhook.kube import watched_resources
from webhook.kube.api import ListerWatcher, Query
from webhook.kube.informers import Informers
from webhook.model.decision import Decision, Outcome, Reason, Status, Verdict
from webhook.serve.metrics import WORKER_ENDS, FabricNodeCounts, Metrics
from webhook.serve.waiting_requests import WaitingRequests, WaitingRequestsMetric

EXPECTED = Path(__file__).parent / "metrics.txt"
NOW = 1_800_000_000.0
PATCHED = Reason("Patched", "The pod was changed.", "")
DENIED = Reason("NoFabric", "No fabric fits.", "")
ADDED = Reason("Added", "It was added.", "")
THERE = Reason("Present", "It was there.", "", reportable=False)
ODD = Reason("Odd", 'A code is quoted as it is: "\\".', "")


def test_a_script_of_events_has_the_same_text(monkeypatch: pytest.MonkeyPatch) -> None:
    """metrics.txt has the text before the first event, and then each step's changed lines."""
    monkeypatch.setattr(time, "time", lambda: NOW)
    metrics = Metrics()
    before = _lines(metrics)
    written = [*before]
    for step, events in SCRIPT.items():
        with events(metrics) or nullcontext():
            after = _lines(metrics)
        written += unified_diff(before, after, "before", step, n=0)
        before = after
    if os.environ.get("UPDATE_GOLDEN"):
        EXPECTED.write_text("".join(written), encoding="utf-8")
    assert "".join(written) == EXPECTED.read_text(encoding="utf-8")


def _lines(metrics: Metrics) -> list[str]:
    """Return the lines without the values that differ between processes and versions."""
    text = re.sub(r"(?m)^(process_\w+) .*", r"\1 …", metrics.text().decode())
    for version in (__version__, platform.python_version()):
        text = text.replace(f'"{version}"', '"…"')
    return text.splitlines(keepends=True)


def _preview(metrics: Metrics) -> AbstractContextManager[None]:
    """Wait for a preview; the next step no longer does."""
    return metrics.worker.previews_pending.track_inprogress()


def _traffic(metrics: Metrics) -> None:
    """Answer requests of all endpoints, on the bounds of the histogram and between them."""
    metrics.connection_opened("mutate")
    metrics.connection_opened("mutate")
    for seconds in (0.0, 0.0005, 0.00050001, 0.003, 0.1, 1.0, 1.25, 30.0):
        metrics.count_request("mutate", 200, seconds)
    metrics.connection_opened("health")
    metrics.count_request("validate", 200, 0.02)
    metrics.count_request("mutate", 503, 0.0001)
    metrics.count_request("preview", 413, 0.5)
    metrics.count_request("other", 404, 0.0002)
    metrics.count_request("mutate", 500, 0.2)
    metrics.internal_errors.inc()
    metrics.event_failures.inc()
    metrics.connection_closed("mutate", "idle")
    metrics.connection_closed("health", "ended")
    metrics.connection_closed("preview", "handshake")
    metrics.connection_closed("mutate", "idle")


def _decisions(metrics: Metrics) -> None:
    """Decide on pods of each verdict, with and without a fabric, and deny one."""
    metrics.count_decision(
        Decision(allowed=True, reason=Reason("NotEnabled", "The pod did not opt in.", ""), pod={})
    )
    outcomes = (
        _outcome("ipc-lock", "a", "applied", ADDED),
        _outcome("ipc-lock", "b", "applied", ADDED),
        _outcome("env", "a", "already", THERE),
        _outcome("env", "b", "warned", ODD),
        _outcome("networks", "", "skipped", THERE),
        _outcome("memory-limit", "a", "failed", ODD),
    )
    patched = Decision(allowed=True, reason=PATCHED, pod={}, outcomes=outcomes, fabric="v100-ib")
    for rdma in ("yes", "no", "unsure", "none", "yes"):
        verdict = Verdict(rdma, PATCHED, "A sentence.")
        metrics.count_decision(patched._replace(verdict=verdict))
    metrics.count_decision(patched._replace(fabric='odd"\\name\n'))
    metrics.count_decision(Decision(allowed=False, reason=DENIED, pod={}, message="Denied."))


def _outcome(mutation: str, container: str, status: Status, reason: Reason) -> Outcome:
    return Outcome(mutation, container, status, reason, "A sentence.")


def _worker(metrics: Metrics) -> None:
    """Validate configurations, and end the worker for each reason."""
    metrics.worker.count_validation(allowed=False)
    metrics.worker.count_validation(allowed=True)
    metrics.worker.count_validation(allowed=False)
    for times, reason in enumerate(WORKER_ENDS, start=1):
        for _ in range(times):
            metrics.worker.count_end(reason)


def _configured(metrics: Metrics) -> None:
    """Load a configuration, replace it, and refuse the next."""
    for load_count, config in enumerate(("c0ffee", "decade"), start=1):
        metrics.configuration.configured.set(True)
        metrics.configuration.show_hash(config)
        metrics.configuration.loads.inc()
        metrics.configuration.reloaded.set(NOW - 1000 + load_count / 8)
    metrics.configuration.successful.set(False)


def _nodes(metrics: Metrics) -> None:
    """Count the nodes of two fabrics, and then of others: the first one is gone."""
    before = {"gone": FabricNodeCounts(3, 1, 0), "v100-ib": FabricNodeCounts(4, 0, 1)}
    after = {"v100-ib": FabricNodeCounts(2, 1, 3), "h100-roce": FabricNodeCounts(0, 0, 0)}
    for counts in (before, after):
        metrics.fabrics.show(counts)


def _lost(metrics: Metrics) -> None:
    """Lose the configuration."""
    metrics.configuration.configured.set(False)
    metrics.configuration.show_hash("")
    metrics.configuration.successful.set(True)


def _certificates(metrics: Metrics) -> None:
    """Prove the guard, and rotate the CA; one of the two configurations is not guarded.

    The API server calls by the other one only; this replica holds the Lease.
    """
    metrics.called.labels("mutating").set(True)
    metrics.called.labels("validating").set(False)
    metrics.lease.held.set(True)
    metrics.lease.successful.set(True)
    metrics.guarded.labels("ValidatingWebhookConfiguration").set(True)
    metrics.guarded.labels("MutatingWebhookConfiguration").set(False)
    metrics.certificates.not_after.set(NOW + 86_400.5)
    metrics.certificates.successful.set(True)
    metrics.certificates.ca_not_after.set(NOW + 8_640_000)
    metrics.certificates.ca_rotating.set(True)
    metrics.certificates.watched.set_function(lambda: True)


def _settled(metrics: Metrics) -> None:
    """End the rotation, and lose the Secret."""
    metrics.certificates.ca_rotating.set(False)
    metrics.certificates.successful.set(False)
    metrics.certificates.watched.set_function(lambda: False)


def _watches(metrics: Metrics) -> None:
    """Watch with three sets of informers: one works, one is removed, and one cannot connect."""
    watched = (
        Informers(
            _Watched,
            delays,
            lambda: 100.0,
            (watched_resources.NAMESPACES, watched_resources.QUOTAS),
        ),
        Informers(_nobody, delays, lambda: 100.0, (watched_resources.CONFIGURATIONS,)),
        Informers(_nobody, delays, lambda: 100.0, (watched_resources.NODES,)),
    )
    for informers in watched:
        metrics.watches.add(informers)
    metrics.watches.remove(watched[1])
    namespaces, quotas, nodes = (*watched[0].reflectors, *watched[2].reflectors)
    for reflector in (namespaces, quotas, nodes, nodes):
        reflector.attempt()
    namespaces.last_contact = 39.75
    waiting = WaitingRequests()
    metrics.registry.register(WaitingRequestsMetric(waiting))
    waiting.counts[False] += 3


class _Watched(Cluster):
    """A cluster with three namespaces, which ends each watch at once."""

    def __init__(self) -> None:
        super().__init__()
        self.put(NAMESPACES, *(namespace(name) for name in "abc"))

    def stream(self, path: str, query: Query, silence: float) -> Stream:
        """Start a watch, and end it."""
        stream = super().stream(path, query, silence)
        stream.send(None)
        return stream


def _nobody() -> ListerWatcher:
    raise ClusterError("there is no API server")


#: Events by the name of their step; a step may return a context that lasts during its scrape.
SCRIPT: dict[str, Callable[[Metrics], AbstractContextManager[None] | None]] = {
    "during a preview": _preview,
    "after requests": _traffic,
    "after decisions": _decisions,
    "after previews and validations": _worker,
    "with a configuration that is not usable": _configured,
    "with nodes": _nodes,
    "without a configuration": _lost,
    "during a rotation of the CA": _certificates,
    "after the rotation": _settled,
    "with watches": _watches,
}
