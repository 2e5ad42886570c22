"""Each query of the dashboard has a result, as Prometheus evaluates it over a real process.

Grafana itself does not run in these tests.
"""

from __future__ import annotations

import json
import re
import time
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml

from tests.integration.installation import installation, running_replica
from tests.integration.promtool import (
    MONITORING,
    assert_true,
    samples_of,
    scraped,
    target_labels,
)
from tests.integration.serving import Certificates, Running, certificates, pod, review
from tests.integration.test_alerts import JOB, NODES, RDMA_OFF, guarded, rdma_node
from tests.waiting import until
from webhook.serve.sources import cluster as cluster_facts

DASHBOARD: dict[str, Any] = json.loads((MONITORING / "dashboard.json").read_text(encoding="utf-8"))
PANELS: list[dict[str, Any]] = [panel for panel in DASHBOARD["panels"] if panel["type"] != "row"]
#: What Grafana writes in place of its variables.
VARIABLES = {"$namespace": "rdma-webhook", "$__rate_interval": "5m"}


class Query(NamedTuple):
    """A query of a panel, without variables."""

    panel: str
    expr: str
    legend: str

    @property
    def legend_labels(self) -> list[str]:
        """The labels that the legend shows."""
        return re.findall(r"{{(\w+)}}", self.legend)


def _query(panel: dict[str, Any], target: dict[str, Any]) -> Query:
    expr: str = target["expr"]
    for variable, value in VARIABLES.items():
        expr = expr.replace(variable, value)
    return Query(panel["title"], expr, target["legendFormat"])


QUERIES = [_query(panel, target) for panel in PANELS for target in panel["targets"]]
each_query = pytest.mark.parametrize(
    "query", QUERIES, ids=lambda query: f"{query.panel}: {query.legend}"
)


class Scrapes(NamedTuple):
    """What a replica in a cluster shows after each of two rounds of the same requests."""

    before: str
    after: str


@pytest.fixture(scope="module")
def scrapes(tmp_path_factory: pytest.TempPathFactory) -> Scrapes:
    """Run a replica with all sources of metrics, and send it requests."""
    folder = tmp_path_factory.mktemp("replica")
    tls = certificates(folder, timedelta(days=90))
    with pytest.MonkeyPatch.context() as monkeypatch:
        return _scrape_rounds(folder, tls, monkeypatch)


def _scrape_rounds(folder: Path, tls: Certificates, monkeypatch: pytest.MonkeyPatch) -> Scrapes:
    nodes = partial(cluster_facts.ClusterNodes, pause=0.1)
    monkeypatch.setattr(cluster_facts, "ClusterNodes", nodes)
    with installation(folder, tls) as api, running_replica(api, tls, monkeypatch) as replica:
        api.cluster.put(NODES, rdma_node())
        until(lambda: replica.metric('rdma_webhook_fabric_nodes{fabric="ib"}') == 1)
        until(lambda: guarded(replica) == 1)
        # As if the replica had issued its certificate itself.
        expiry = time.time() + timedelta(days=300).total_seconds()
        replica._server.metrics.certificates.ca_not_after.set(expiry)
        return Scrapes(_scrape_round(replica), _scrape_round(replica))


def _scrape_round(replica: Running) -> str:
    """Send pods that are equipped, lack RDMA and are denied; scrape the replica."""
    without = pod()
    without["metadata"]["ownerReferences"] = [JOB]
    without["spec"]["containers"][0]["env"] = [RDMA_OFF]
    denied = pod()
    denied["metadata"]["annotations"]["rdma.lab/fabric"] = "elsewhere"
    for manifest in (pod(), pod(), without, denied):
        assert replica.post(review(manifest)).status == 200
    return scraped(replica)


def conditions(query: Query) -> list[str]:
    """Return expressions that are 1 if the query has a number, and each label of its legend."""
    # A comparison with a number drops NaN, such as the quantile of no requests.
    numbers = f"({query.expr}) > -Inf"
    # vector(1) has no labels, so `unless` drops the series in which the label is missing.
    return [
        f"group({numbers})",
        *(
            f"group((group by ({label}) ({numbers})) unless on ({label}) vector(1))"
            for label in query.legend_labels
        ),
    ]


def test_every_query_has_a_result(scrapes: Scrapes, tmp_path: Path) -> None:
    """No panel of a replica that works is empty, and no legend has an empty label."""
    assert_true(tmp_path, *scrapes, [line for query in QUERIES for line in conditions(query)])


@pytest.mark.parametrize(
    ("expr", "legend"),
    [
        ("sum(rdma_webhook_requests)", ""),
        ("sum(rdma_webhook_requests_total) / 0 * 0", ""),
        ("sum by (status) (rdma_webhook_requests_total)", "{{status}}"),
        ("sum(rdma_webhook_requests_total)", "{{endpoint}}"),
    ],
    ids=["no such metric", "not a number", "no such label", "label summed up"],
)
def test_a_query_without_a_result_is_reported(
    scrapes: Scrapes, tmp_path: Path, expr: str, legend: str
) -> None:
    """The test above can fail."""
    with pytest.raises(AssertionError, match="FAILED"):
        assert_true(tmp_path, *scrapes, conditions(Query("broken", expr, legend)))


@each_query
def test_a_query_names_what_the_process_has(scrapes: Scrapes, query: Query) -> None:
    """A misspelled metric, or a label in `by`, `on` or a selector, would hide series."""
    labels = _labels(scrapes.after)
    names = set(re.findall(r"\b(?:rdma_webhook|process)_\w+", query.expr))
    assert names <= labels.keys()
    allowed = set.union(*(labels[name] for name in names))
    assert _named_labels(query.expr) | {*query.legend_labels} <= allowed


def _labels(scrape: str) -> dict[str, set[str]]:
    """Return metric → the labels of its series."""
    labels: dict[str, set[str]] = {}
    for series in samples_of(scrape):
        name, _, pairs = series.partition("{")
        labels.setdefault(name, set()).update(re.findall(r"(\w+)=\"", pairs))
    return labels


def _named_labels(expr: str) -> set[str]:
    """Return the labels in `by (...)`, `on (...)` and selectors."""
    lists = re.findall(r"\b(?:by|on) \(([\w, ]+)\)", expr)
    selectors = re.findall(r"(\w+)(?:=~|!~|!=|=)\"", expr)
    return {*selectors, *(label for names in lists for label in names.split(", "))}


def test_labels_are_read_from_queries() -> None:
    """The test above sees every label that a query names."""
    expr = 'sum by (a, b) (x{c="1",d=~"2",e!="3",f!~"4"}) and on (g, h) y'
    assert _named_labels(expr) == set("abcdefgh")


def test_prometheus_renames_no_label(scrapes: Scrapes) -> None:
    """If a target had a label of a metric, Prometheus would rename the one of the metric."""
    assert {"namespace", "pod"} <= target_labels().keys()
    stored = set.union(*_labels(scrapes.after).values())
    assert [label for label in stored if label.startswith("exported_")] == []


def test_the_variables_are_those_of_the_queries(scrapes: Scrapes) -> None:
    """The choice of namespaces comes from a metric that every replica has."""
    source, namespaces = DASHBOARD["templating"]["list"]
    assert (source["name"], source["query"]) == ("datasource", "prometheus")
    assert f"${namespaces['name']}" in VARIABLES
    query = namespaces["query"]["query"]
    assert query == namespaces["definition"]
    (metric,) = re.findall(r"^label_values\((\w+), namespace\)$", query)
    assert metric in _labels(scrapes.after)


def test_ids_are_unique() -> None:
    """Grafana keeps links and overrides by these ids."""
    ids = [panel["id"] for panel in DASHBOARD["panels"]]
    assert len({*ids}) == len(ids)
    for panel in PANELS:
        references = [target["refId"] for target in panel["targets"]]
        assert len({*references}) == len(references)


def test_panels_do_not_overlap() -> None:
    """Each place of the grid of 24 columns belongs to one panel at most."""
    occupied: set[tuple[int, int]] = set()
    for panel in DASHBOARD["panels"]:
        place = panel["gridPos"]
        assert place["x"] + place["w"] <= 24
        columns = range(place["x"], place["x"] + place["w"])
        places = {(x, place["y"] + row) for x in columns for row in range(place["h"])}
        assert not occupied & places, panel["title"]
        occupied |= places


@pytest.mark.parametrize("panel", PANELS, ids=lambda panel: panel["title"])
def test_a_panel_has_what_it_shows(panel: dict[str, Any]) -> None:
    """Its data come from the chosen source; it has a description and a unit."""
    source = {"type": "prometheus", "uid": "${datasource}"}
    assert [panel["datasource"], *(target["datasource"] for target in panel["targets"])] == [
        source
    ] * (1 + len(panel["targets"]))
    assert panel["description"].endswith(".")
    assert panel["fieldConfig"]["defaults"]["unit"]


def test_the_least_step_is_the_interval_of_the_scrapes() -> None:
    """Grafana makes $__rate_interval at least four times the step of a query."""
    monitor = yaml.safe_load((MONITORING / "podmonitor.yaml").read_text(encoding="utf-8"))
    (endpoint,) = monitor["spec"]["podMetricsEndpoints"]
    steps = {
        target.get("interval")
        for panel in PANELS
        for target in panel["targets"]
        if "$__rate_interval" in target["expr"]
    }
    assert steps == {endpoint["interval"]}


def test_the_dashboard_is_installed() -> None:
    """The sidecar of Grafana finds it by its label, and its ConfigMap has a fixed name."""
    kustomization = yaml.safe_load((MONITORING / "kustomization.yaml").read_text(encoding="utf-8"))
    (generator,) = kustomization["configMapGenerator"]
    assert generator["files"] == [f"{DASHBOARD['uid']}.json=dashboard.json"]
    assert generator["options"] == {
        "disableNameSuffixHash": True,
        "labels": {"grafana_dashboard": "1"},
    }
