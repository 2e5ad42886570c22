"""Each failure raises exactly its alert, as Prometheus evaluates the shipped rules over a process.

Most failures are planted in a real server. Nothing has to wait for the `for` of an alert: see
promtool.py.
"""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Iterator
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.integration.live_api import LiveApi
from tests.integration.promtool import (
    Phase,
    assert_alerts,
    promtool,
    rule_file,
    scraped,
    with_failure,
)
from tests.integration.serving import (
    FABRICS,
    Certificates,
    Running,
    certificates,
    fabrics,
    mount,
    pod,
    renew,
    review,
)
from tests.unit.kube.cluster import NAMESPACES, Cluster, namespace, node
from tests.waiting import until
from webhook.decide import decide
from webhook.decide.analysis import DecisionInput
from webhook.kube import watched_resources
from webhook.model.decision import Decision
from webhook.serve import server as server_module
from webhook.serve.http import decision_cache
from webhook.serve.sources import cluster as cluster_facts
from webhook.serve.sources import permission_check

NODES = watched_resources.NODES.path
JOB = {"apiVersion": "batch/v1", "kind": "Job", "name": "train", "uid": "7", "controller": True}
RDMA_OFF = {"name": "NCCL_IB_DISABLE", "value": "1"}


@pytest.fixture
def tls(tmp_path: Path) -> Certificates:
    """Issue a certificate that lasts as long as cert-manager's."""
    return certificates(tmp_path, timedelta(days=90))


@pytest.fixture
def server(tls: Certificates, tmp_path: Path) -> Iterator[Running]:
    """Run a server with a fabrics file, outside a cluster."""
    with Running(tls, fabrics(tmp_path)) as running:
        until(lambda: running.get("/readyz").status == 200)
        yield running


@pytest.fixture
def api(tmp_path: Path) -> Iterator[LiveApi]:
    """Serve a cluster with one node of the fabric."""
    cluster = Cluster()
    cluster.put(NAMESPACES, namespace("lab"))
    cluster.put(NODES, rdma_node())
    with LiveApi(tmp_path, cluster).serving() as served:
        yield served


@pytest.fixture
def replica(
    api: LiveApi, tls: Certificates, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Running]:
    """Run a server that watches the cluster, whose sources pause less than usual."""
    monkeypatch.setenv("POD_NAME", "rdma-webhook-0")
    monkeypatch.setattr(
        cluster_facts, "ClusterNodes", partial(cluster_facts.ClusterNodes, pause=0.1)
    )
    monkeypatch.setattr(permission_check, "CONFIRM", 0.1)
    monkeypatch.setattr(permission_check, "RETRY_WHEN_FINE", 0.1)
    with Running(tls, fabrics(tmp_path), kubeconfig=api.kubeconfig) as running:
        until(lambda: running.get("/readyz").status == 200)
        until(lambda: running.metric('rdma_webhook_fabric_nodes{fabric="ib"}') == 1)
        until(lambda: guarded(running) == 1)
        yield running


def guarded(running: Running) -> float | None:
    """Return the metric for one of the two webhook configurations."""
    return running.metric('rdma_webhook_guarded{kind="MutatingWebhookConfiguration"}')


def rdma_node(**changes: dict[str, Any]) -> dict[str, Any]:
    """Make a node of the fabric, with GPUs and its RDMA resource."""
    manifest = node("n1", gpu="8")
    manifest["status"]["allocatable"] |= {"rdma/hca": "8"}
    return manifest | changes


def test_promtool_accepts_rules_and_metrics(replica: Running, tmp_path: Path) -> None:
    """Neither the rules nor the metrics of a scraped process have anything to correct."""
    replica.post(review())
    checked = promtool("check", "rules", "--lint-fatal", rule_file(tmp_path))
    assert checked.returncode == 0, checked.stderr
    linted = promtool("check", "metrics", text=scraped(replica))
    assert (linted.returncode, linted.stdout, linted.stderr) == (0, "", "")


def test_a_bad_metric_is_reported() -> None:
    """The check above can fail."""
    linted = promtool("check", "metrics", text="# TYPE loads counter\nloads 1\n")
    assert 'counter metrics should have "_total" suffix' in linted.stdout + linted.stderr


def test_a_configuration_that_cannot_be_used(server: Running, tmp_path: Path) -> None:
    """The last good one stays in use, so there is only a warning."""
    failed = "rdma_webhook_config_last_reload_successful"
    expect_alerts = with_failure(
        *(tmp_path, server),
        lambda: mount(tmp_path, "spec: []"),
        lambda: server.metric(failed) == 0,
    )
    expect_alerts("RdmaWebhookConfigurationRejected")


def test_no_configuration(server: Running, tmp_path: Path) -> None:
    """A configuration without fabrics is valid, but decides on no pod."""
    expect_alerts = with_failure(
        *(tmp_path, server),
        lambda: mount(tmp_path, FABRICS.partition("  fabrics:")[0] + "  fabrics: []\n"),
        lambda: server.metric("rdma_webhook_configured") == 0,
    )
    expect_alerts("RdmaWebhookNotConfigured")


def test_no_replica(server: Running, tmp_path: Path) -> None:
    """No series at all is a failure, too."""
    assert_alerts(tmp_path, Phase(scraped(server)), Phase("", ["RdmaWebhookAbsent"]))


def test_a_defect(tls: Certificates, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A request that is answered with 500 raises the alert."""
    monkeypatch.setattr(server_module, "decide", lambda *_: 1 / 0)
    with Running(tls, fabrics(tmp_path)) as server:
        until(lambda: server.get("/readyz").status == 200)
        expect_alerts = with_failure(
            *(tmp_path, server),
            lambda: server.post(review()),
            lambda: server.metric("rdma_webhook_internal_errors_total") == 1,
        )
    expect_alerts("RdmaWebhookInternalError")


def test_a_cached_decision_that_differs(
    tls: Certificates, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A rule that reads the host name, which pods of one workload do not share, is noticed."""
    monkeypatch.setattr(decision_cache, "CHECKED", 1)
    monkeypatch.setattr(server_module, "decide", by_host_name)
    manifest = pod()
    manifest["spec"]["hostname"] = "train-0"
    with Running(tls, fabrics(tmp_path)) as server:
        until(lambda: server.get("/readyz").status == 200)
        server.post(review(manifest))
        expect_alerts = with_failure(
            *(tmp_path, server),
            lambda: server.post(review(manifest)),
            lambda: server.metric("rdma_webhook_decision_cache_differences_total") == 1,
        )
    expect_alerts("RdmaWebhookDecisionCacheOff")


def by_host_name(manifest: dict[str, Any], decision_input: DecisionInput) -> Decision:
    """Decide as a webhook does whose rules read the host name."""
    return decide(manifest, decision_input)._replace(
        warnings=(str(manifest["spec"].get("hostname")),)
    )


def test_a_certificate_that_nobody_renews(
    server: Running, tls: Certificates, tmp_path: Path
) -> None:
    """A certificate from files raises the alert a week before it expires."""
    soon = time.time() + timedelta(days=8).total_seconds()
    expect_alerts = with_failure(
        *(tmp_path, server),
        lambda: renew(tls, timedelta(days=6)),
        lambda: expiry(server) < soon,
    )
    expect_alerts("RdmaWebhookCertificateExpires")


def expiry(running: Running) -> float:
    """Return when the certificate expires."""
    return running.metric("rdma_webhook_certificate_not_after_timestamp_seconds") or 0.0


def test_a_certificate_that_cannot_be_read(
    server: Running, tls: Certificates, tmp_path: Path
) -> None:
    """The certificate in use is still valid, so there is only a warning."""
    expect_alerts = with_failure(
        *(tmp_path, server),
        lambda: tls.cert.write_text("no certificate"),
        lambda: server.metric("rdma_webhook_certificate_last_update_successful") == 0,
    )
    expect_alerts("RdmaWebhookCertificateProblem")


@pytest.mark.parametrize(
    ("leaf_hours", "ca_days", "alerts"),
    [
        (9, 122, []),
        (3, 122, ["RdmaWebhookCertificateExpires"]),
        (24, 29, ["RdmaWebhookCAExpires"]),
    ],
    ids=["before renewal", "leaf not renewed", "CA not rotated"],
)
def test_certificates_of_its_own(
    server: Running, tmp_path: Path, leaf_hours: int, ca_days: int, alerts: list[str]
) -> None:
    """A leaf of 24 hours is renewed after 16: no alert before it is overdue; a CA after 243 days.

    The times are set in the process: its own thread would renew them.
    """
    gauges, now = server._server.metrics.certificates, time.time()
    gauges.not_after.set(now + timedelta(hours=leaf_hours).total_seconds())
    gauges.ca_not_after.set(now + timedelta(days=ca_days).total_seconds())
    assert_alerts(tmp_path, Phase(scraped(server), alerts))


def test_an_api_server_that_is_away(replica: Running, api: LiveApi, tmp_path: Path) -> None:
    """Facts that are older than five minutes raise the alert; there is no other yet."""
    failures = 'rdma_webhook_facts_failures_total{resource="nodes"}'
    with api.outage():
        expect_alerts = with_failure(
            *(tmp_path, replica), lambda: None, lambda: replica.metric(failures)
        )
    expect_alerts("RdmaWebhookFactsStale", contact=False)


def test_a_node_that_lost_its_resource(replica: Running, api: LiveApi, tmp_path: Path) -> None:
    """A node without the device plugin raises the alert of its fabric."""
    lacking = 'rdma_webhook_fabric_nodes_without_resource{fabric="ib"}'
    expect_alerts = with_failure(
        *(tmp_path, replica),
        lambda: api.cluster.put(NODES, node("n1", gpu="8")),
        lambda: replica.metric(lacking) == 1,
    )
    expect_alerts("RdmaWebhookNodesWithoutResource")


@pytest.mark.parametrize(
    "changed",
    [node("n1"), rdma_node(spec={"unschedulable": True})],
    ids=["not of the fabric", "cordoned"],
)
def test_a_fabric_without_nodes(
    replica: Running, api: LiveApi, tmp_path: Path, changed: dict[str, Any]
) -> None:
    """If the last node of the fabric is lost or cordoned, its alert fires."""
    expect_alerts = with_failure(
        *(tmp_path, replica),
        lambda: api.cluster.put(NODES, changed),
        lambda: replica.metric('rdma_webhook_fabric_nodes{fabric="ib"}') == 0,
    )
    expect_alerts("RdmaWebhookFabricWithoutNodes")


def test_an_event_that_is_refused(replica: Running, api: LiveApi, tmp_path: Path) -> None:
    """The API server refuses the Event for the owner of a pod without RDMA."""
    manifest = pod()
    manifest["metadata"]["ownerReferences"] = [JOB]
    manifest["spec"]["containers"][0]["env"] = [RDMA_OFF]
    api.forbidden.append("^POST .*/events[?]")
    expect_alerts = with_failure(
        *(tmp_path, replica),
        lambda: replica.post(review(manifest)),
        lambda: replica.metric("rdma_webhook_event_failures_total") == 1,
    )
    expect_alerts("RdmaWebhookEventFailures")


def test_an_account_that_may_do_too_much(replica: Running, api: LiveApi, tmp_path: Path) -> None:
    """Without its policy, the API server allows the dry runs."""
    expect_alerts = with_failure(
        *(tmp_path, replica),
        api.forbidden.clear,
        lambda: guarded(replica) == 0,
    )
    expect_alerts("RdmaWebhookNotGuarded")


def test_a_worker_that_crashes(server: Running, tmp_path: Path) -> None:
    """Three crashes within 15 minutes raise the alert, two do not."""
    scrapes = []
    for _ in range(4):
        until(lambda: server.post(json.dumps(pod()), "/preview").status == 200)
        scrapes.append(scraped(server))
        child = server._server._worker._child
        assert child is not None
        os.kill(child.pid, signal.SIGKILL)
    crashes = 'rdma_webhook_worker_ends_total{reason="crash"} %d.0'
    assert [crashes % number in scrape for number, scrape in enumerate(scrapes)] == [True] * 4
    assert_alerts(tmp_path, Phase(scrapes[0]), Phase(scrapes[2]))
    assert_alerts(tmp_path, Phase(scrapes[0]), Phase(scrapes[3], ["RdmaWebhookWorkerRestarts"]))
