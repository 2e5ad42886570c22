"""docs/operation.md lists every metric, parameter and limit of the code."""

from __future__ import annotations

import re

import pytest
from prometheus_client import Metric

from certs.clock import delays
from tests.generated_pages import DOCS, assert_up_to_date
from tests.unit.serve.client import Lines
from webhook.admission.configuration_review import MAX_ERRORS
from webhook.decide.limits import MAX_CONTAINERS, MAX_ENTRIES
from webhook.errors import ClusterError
from webhook.kube.api import ListerWatcher
from webhook.kube.informers import Informers
from webhook.model.decision import Decision, Outcome, Reason
from webhook.preview.worker.confinement import MAX_ADDRESS_SPACE
from webhook.preview.worker.frames import MAX_ANSWER_BYTES
from webhook.serve import status
from webhook.serve.http import asgi, validate
from webhook.serve.http.asgi import MAX_BODY_BYTES
from webhook.serve.http.preview import (
    BYTES,
    BYTES_PER_ADDRESS,
    PENDING,
    PENDING_PER_ADDRESS,
    WAIT_SECONDS,
)
from webhook.serve.http.query import PARAMETERS
from webhook.serve.http.review_body import MAX_DEPTH, MAX_OBJECTS, MAX_VALUES
from webhook.serve.listener import LIMITS
from webhook.serve.metrics import FabricNodeCounts, Metrics
from webhook.serve.options import ServeOptions
from webhook.serve.transport.connection import BESIDE_BODY, FIELDS, PIPELINED
from webhook.serve.transport.handshake import HANDSHAKE_SECONDS
from webhook.serve.transport.tls_limits import HANDSHAKE_BYTES
from webhook.serve.waiting_requests import WaitingRequests, WaitingRequestsMetric

PAGE = DOCS / "operation.md"
REASON = Reason("Added", "It was added.", "")


def _families() -> list[Metric]:
    """Return all metrics of a server that has answered a request."""
    metrics = Metrics()
    outcome = Outcome("ipc-lock", "a", "applied", REASON, "")
    metrics.count_request("mutate", 200, 0.1)
    metrics.connection_opened("mutate")
    metrics.guarded.labels("MutatingWebhookConfiguration")
    metrics.called.labels("mutating")
    metrics.lease.held.set(True)
    metrics.connection_closed("mutate", "ended")
    metrics.count_decision(Decision(allowed=True, reason=REASON, pod={}, outcomes=(outcome,)))
    metrics.watches.add(Informers(_nobody, delays))
    metrics.registry.register(WaitingRequestsMetric(WaitingRequests()))
    metrics.configuration.show_hash("c0ffee")
    status._WriteReport(metrics, Lines().log)
    metrics.fabrics.show({"v100-ib": FabricNodeCounts(2, 0, 0)})
    return sorted(metrics.registry.collect(), key=lambda family: family.name)


def _nobody() -> ListerWatcher:
    raise ClusterError("there is no API server")


def _table() -> str:
    lines = ["", "| metric | type | labels | meaning |", "|---|---|---|---|"]
    for family in _families():
        if family.name.startswith("process_"):
            continue
        name = f"{family.name}_total" if family.type == "counter" else family.name
        labels = sorted({key for sample in family.samples for key in sample.labels} - {"le"})
        written = ", ".join(f"`{label}`" for label in labels)
        lines.append(f"| `{name}` | {family.type} | {written} | {family.documentation} |")
    return "\n".join([*lines, ""])


#: The labels of all metrics: single words.
LABELS = {
    *("allowed", "arrived", "code", "config", "endpoint", "fabric", "kind", "le", "listener"),
    *("mutation", "python", "rdma", "reason", "resource", "status", "version", "webhook"),
}

#: The rule of the page: for each kind of metric, its type, how its name ends, and how its
#: description begins. A state is one word, or a subject and one word.
NAMES = (
    ("counter", r"\w+s(_[a-z]+ed)?", ""),
    ("histogram", r"\w+_duration_seconds", "Time "),
    ("gauge", r"\w+_info", "Always 1; "),
    ("gauge", r"\w+_timestamp_seconds", "Time at which "),
    ("gauge", r"\w+_last_[a-z]+_successful", "1 if "),
    ("gauge", r"([a-z]+_)?[a-z]*(ed|ing|held)", "1 "),
    ("gauge", r"([a-z]+_)?[a-z]+s(_[a-z_]+)?", ""),
)


@pytest.mark.parametrize("family", _families(), ids=lambda family: family.name)
def test_names_follow_the_rule(family: Metric) -> None:
    """Each of our metrics is of one of the kinds on the page."""
    name = family.name.removeprefix("rdma_webhook_")
    kinds = [
        (kind, pattern, beginning)
        for kind, pattern, beginning in NAMES
        if kind == family.type
        and re.fullmatch(pattern, name)
        and family.documentation.startswith(beginning)
    ]
    assert kinds or name.startswith("process_")
    assert {label for sample in family.samples for label in sample.labels} <= LABELS


def test_metrics_are_up_to_date() -> None:
    """Every metric is on the page with its labels, as in the registry."""
    assert_up_to_date(PAGE, "<!-- metrics -->", "<!-- /metrics -->", f"{_table()}\n")


@pytest.mark.parametrize(
    "words",
    [
        *(f"| `{parameter}=" for parameter in PARAMETERS),
        f"{MAX_BODY_BYTES >> 20} MiB",
        "{}, {} and {} MiB for".format(*(limits.in_all >> 20 for limits in LIMITS.values())),
        "{}, {} and {} MiB, so".format(*(limits.per_address >> 20 for limits in LIMITS.values())),
        f"{LIMITS['mutate'].connection >> 10} KiB for one with TLS",
        f"{LIMITS['health'].connection >> 10} KiB without",
        f"{LIMITS['mutate'].per_address // LIMITS['mutate'].connection:,} silent ones",
        f"| TLS handshake | {HANDSHAKE_SECONDS:g} s |",
        f"its certificates included | {HANDSHAKE_BYTES >> 10} KiB |",
        f"{MAX_VALUES:,} values or {MAX_OBJECTS:,} objects",
        f"{BESIDE_BODY >> 10} KiB and {FIELDS} fields",
        f"{PIPELINED} that wait",
        f"{MAX_DEPTH} levels",
        f"{PENDING} at once, {PENDING_PER_ADDRESS} from one address",
        f"| {validate.PENDING} at once, {validate.PENDING_PER_ADDRESS} from one address; ",
        (
            f"{validate.BYTES >> 20} MiB of objects, "
            f"{validate.BYTES_PER_ADDRESS >> 20} MiB from one address"
        ),
        f"memory of a validation | {validate.SECONDS:g} s with its wait for others, 192 MiB",
        f"has not answered within {validate.SECONDS:g} s",
        f"(the first {MAX_ERRORS})",
        f"{MAX_CONTAINERS} containers",
        f"{MAX_ENTRIES:,} entries",
        f"| {ServeOptions().request_seconds:g} s |",
        f"of a preview | {ServeOptions().preview_seconds:g} s, {MAX_ADDRESS_SPACE >> 20} MiB of ",
        f"{BYTES >> 20} MiB, {BYTES_PER_ADDRESS >> 20} MiB from one address",
        f"| a preview's wait for others | {WAIT_SECONDS:g} s |",
        f"| a preview's answer | {MAX_ANSWER_BYTES >> 20} MiB; {asgi.SECONDS:g} s to read it |",
        f"`--drain-seconds` ({ServeOptions().drain_seconds:g};",
        f"after {ServeOptions().idle_seconds:g} s at most",
        f"as plain HTTP on port {ServeOptions().page_port} (`--page-port`)",
        f"| idle connection, even before its first request | {ServeOptions().idle_seconds:g} s |",
    ],
)
def test_numbers_and_parameters_are_on_the_page(words: str) -> None:
    """The page states every bound of the code."""
    assert words in PAGE.read_text(encoding="utf-8")
