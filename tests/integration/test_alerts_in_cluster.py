"""Alerts about what a replica does in a cluster: its Lease, its status, and who calls it.

The API server has the objects of the manifests, but no rules of its own; see live_api.py.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from tests.integration.installation import (
    HELD,
    LEASE,
    WEBHOOKS,
    WRITTEN,
    called,
    installation,
    running_replica,
)
from tests.integration.live_api import LiveApi
from tests.integration.promtool import promtool, scraped, with_failure
from tests.integration.serving import Certificates, Running, certificates
from tests.integration.test_live_configuration import PATH, fabrics_object


@pytest.fixture
def tls(tmp_path: Path) -> Certificates:
    """Issue a certificate that lasts as long as cert-manager's."""
    return certificates(tmp_path, timedelta(days=90))


@pytest.fixture
def api(tls: Certificates, tmp_path: Path) -> Iterator[LiveApi]:
    """Serve the objects of an installation with a configuration."""
    with installation(tmp_path, tls) as served:
        yield served


@pytest.fixture
def replica(api: LiveApi, tls: Certificates, monkeypatch: pytest.MonkeyPatch) -> Iterator[Running]:
    """Run the replica that holds the Lease."""
    with running_replica(api, tls, monkeypatch) as running:
        yield running


def test_promtool_accepts_the_metrics(replica: Running) -> None:
    """The metrics that only a replica in a cluster has are also named well."""
    linted = promtool("check", "metrics", text=scraped(replica))
    assert (linted.returncode, linted.stdout, linted.stderr) == (0, "", "")


@pytest.mark.parametrize(
    ("label", "alert"),
    [("mutating", "RdmaWebhookNotCalled"), ("validating", "RdmaWebhookNotValidating")],
)
def test_a_webhook_configuration_that_is_deleted(
    replica: Running, api: LiveApi, tmp_path: Path, label: str, alert: str
) -> None:
    """Nobody calls the webhook any more; only one of the two calls is about pods."""
    expect_alerts = with_failure(
        *(tmp_path, replica),
        lambda: api.objects.update({WEBHOOKS[label][1]: None}),
        lambda: replica.metric(called(label)) == 0,
    )
    expect_alerts(alert)


@pytest.mark.parametrize("deleted", [True, False], ids=["deleted", "forbidden"])
def test_a_lease_that_nobody_holds(
    replica: Running, api: LiveApi, tmp_path: Path, deleted: bool
) -> None:
    """The Lease was deleted, or the right to change it."""

    def lose() -> None:
        api.objects[LEASE] = None if deleted else api.objects[LEASE]
        api.forbidden.append("^PUT .*/leases/")

    expect_alerts = with_failure(tmp_path, replica, lose, lambda: replica.metric(HELD) == 0)
    expect_alerts("RdmaWebhookLeaseNotHeld")


def test_a_status_that_may_not_be_written(replica: Running, api: LiveApi, tmp_path: Path) -> None:
    """Without its right, the replica notices at the next change of the object."""

    def forbid() -> None:
        api.forbidden.append("^PATCH .*/status")
        api.cluster.put(PATH, fabrics_object("roce"))

    expect_alerts = with_failure(tmp_path, replica, forbid, lambda: replica.metric(WRITTEN) == 0)
    expect_alerts("RdmaWebhookStatusNotWritten")
