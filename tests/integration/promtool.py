"""promtool, with which Prometheus checks metrics and evaluates rules and queries over scrapes.

The evaluation takes no real time: each scrape of a process is repeated, stamped a minute apart.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from tests.cluster.binaries import cache_folder
from tests.cluster.versions import MODULES
from tests.integration.programs import lacking
from tests.integration.serving import Running
from tests.waiting import until

MONITORING = Path(__file__).parents[2] / "manifests/monitoring"
RULES = MONITORING / "prometheusrule.yaml"
#: Minutes for which a scrape is repeated: longer than any alert's `for` and range.
MINUTES = 90
#: Minutes after a change at which a query for five minutes has samples from before and after it.
_AFTER_CHANGE = 2
#: The labels that Prometheus and its operator give the targets of a PodMonitor (relabel_configs of
#: generatePodMonitorConfig in the operator's pkg/prometheus/promcfg.go).
_OF_OPERATOR = {
    "namespace": "rdma-webhook",
    "container": "webhook",
    "pod": "rdma-webhook-0",
    "job": "rdma-webhook/rdma-webhook",
    "endpoint": "health",
    "instance": "192.0.2.1:8080",
}
#: The time of the last contact with the API server advances while there is contact.
_CONTACT = "rdma_webhook_facts_last_contact_timestamp_seconds"
_FIRING = f'group by (alertname) (last_over_time(ALERTS{{alertstate="firing"}}[{MINUTES}m]))'


class Phase(NamedTuple):
    """A state of the process that lasts MINUTES, and the alerts that fire during it."""

    scrape: str
    """The text of /metrics; "" if nothing answers."""
    alerts: Sequence[str] = ()
    contact: bool = True
    """Whether the API server sends something each minute, as a real one does."""


def promtool(*arguments: str | Path, text: str = "") -> subprocess.CompletedProcess[str]:
    """Run promtool; if it was not built, fail with CI=true, else skip the test."""
    program = cache_folder(MODULES["prometheus"]) / "promtool"
    if not program.exists():
        lacking("no promtool here: make promtool")
    return subprocess.run(
        [program, *arguments], input=text, capture_output=True, text=True, check=False
    )


def rule_file(folder: Path) -> Path:
    """Write the shipped rules as Prometheus' operator does, and return the file."""
    file = folder / "rules.yaml"
    spec = yaml.safe_load(RULES.read_text(encoding="utf-8"))["spec"]
    file.write_text(yaml.safe_dump(spec), encoding="utf-8")
    return file


def assert_alerts(folder: Path, *phases: Phase) -> None:
    """Assert that during each phase exactly its alerts fire, at some time."""
    expected = [_expected(number, phase) for number, phase in enumerate(phases, 1)]
    _assert_samples(folder, phases, expected)


def assert_true(folder: Path, before: str, after: str, queries: Iterable[str]) -> None:
    """Assert that each query is 1, without labels, soon after a scrape changed to another."""
    expected = [
        {
            "expr": query,
            "eval_time": f"{MINUTES + _AFTER_CHANGE}m",
            "exp_samples": [{"labels": "{}", "value": 1}],
        }
        for query in queries
    ]
    _assert_samples(folder, [Phase(before), Phase(after)], expected)


def _assert_samples(folder: Path, phases: Sequence[Phase], expected: list[dict[str, Any]]) -> None:
    test = {
        "interval": "1m",
        "start_timestamp": datetime.now(UTC).isoformat(timespec="seconds"),
        "input_series": _series(phases),
        "promql_expr_test": expected,
    }
    file = folder / "test.yaml"
    document = {"rule_files": [str(rule_file(folder))], "evaluation_interval": "1m"}
    file.write_text(yaml.safe_dump({**document, "tests": [test]}), encoding="utf-8")
    ran = promtool("test", "rules", file)
    assert ran.returncode == 0, ran.stdout + ran.stderr


def scraped(running: Running) -> str:
    """Scrape the server."""
    return running.get("/metrics").text


def with_failure(
    folder: Path, running: Running, cause: Callable[[], object], shows: Callable[[], object]
) -> Callable[..., None]:
    """Plant a failure, wait until the metrics show it; return an assertion on the alerts."""
    before = Phase(scraped(running))
    cause()
    until(shows)
    after = scraped(running)
    return lambda *alerts, **phase: assert_alerts(folder, before, Phase(after, alerts, **phase))


def _expected(number: int, phase: Phase) -> dict[str, Any]:
    return {
        "expr": _FIRING,
        "eval_time": f"{number * MINUTES - 1}m",
        "exp_samples": [
            {"labels": f'{{alertname="{alert}"}}', "value": 1} for alert in phase.alerts
        ],
    }


def _series(phases: Sequence[Phase]) -> list[dict[str, str]]:
    """Return the series of all phases in promtool's notation."""
    samples = [samples_of(phase.scrape) for phase in phases]
    return [
        {
            "series": series,
            "values": " ".join(
                _values(series, values.get(series), number, phase)
                for number, (phase, values) in enumerate(zip(phases, samples, strict=True))
            ),
        }
        for series in dict.fromkeys(series for values in samples for series in values)
    ]


def samples_of(scrape: str) -> dict[str, float]:
    """Return series → value of a scrape, with the labels that Prometheus stores."""
    samples = {}
    for line in scrape.splitlines():
        if line.startswith(("rdma_webhook_", "process_")):
            series, _, value = line.rpartition(" ")
            name, _, labels = series.removesuffix("}").partition("{")
            samples[f"{name}{{{_stored_labels(labels)}}}"] = float(value)
    return samples


def _stored_labels(labels: str) -> str:
    """Add the labels of the target; a label of the metric with such a name is renamed."""
    target = target_labels()
    renamed = re.sub(rf"(^|,)({'|'.join(target)})=", r"\1exported_\2=", labels)
    return ",".join([*(f'{name}="{value}"' for name, value in target.items()), renamed]).rstrip(",")


@cache
def target_labels() -> dict[str, str]:
    """Return the labels of a target: the operator's, without what the PodMonitor drops."""
    monitor = yaml.safe_load((MONITORING / "podmonitor.yaml").read_text(encoding="utf-8"))
    (endpoint,) = monitor["spec"]["podMetricsEndpoints"]
    dropped = [
        rule["regex"] for rule in endpoint.get("relabelings", []) if rule["action"] == "labeldrop"
    ]
    return {
        name: value
        for name, value in _OF_OPERATOR.items()
        if not any(re.fullmatch(pattern, name) for pattern in dropped)
    }


def _values(series: str, value: float | None, number: int, phase: Phase) -> str:
    """Repeat a value for the phase; a time of contact is as long ago as it was at the scrape."""
    if value is None:
        return f"_x{MINUTES}"
    step = 0.0
    if value and series.startswith(_CONTACT):
        value += timedelta(minutes=number * MINUTES).total_seconds()
        step = 60.0 if phase.contact else 0.0
    return f"{value:.3f}+{step}x{MINUTES - 1}"
