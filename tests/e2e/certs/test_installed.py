"""`rdma-webhook certs` for the installed manifests: from outside, and in a pod."""

from __future__ import annotations

import json
from typing import Any

from tests.cluster.install import DEPLOYMENT, NAME, Webhook
from tests.e2e.certs.command import certs
from tests.waiting import until


def test_from_outside(webhook: Webhook) -> None:
    """With an administrator's kubeconfig it shows the Secret, `caBundle` and each replica."""
    report: dict[str, Any] = {}

    def shows_each_replica() -> bool:
        # The Service's endpoints follow the replicas after a moment.
        code, now = certs("status", "--kubeconfig", str(webhook.cluster.kubeconfig))
        report.update(now, code=code)
        return len(now["handshakes"]) == len(webhook.replicas())

    until(shows_each_replica, lambda: report)
    assert (report["code"], report["healthy"], report["phase"]) == (0, True, "settled"), report
    name = f"{NAME}.{NAME}.svc"
    assert {(handshake["issuer"], handshake["names"][0]) for handshake in report["handshakes"]} == {
        ("current", name)
    }


def test_within_a_pod(webhook: Webhook) -> None:
    """A replica's ServiceAccount may not list endpoints, so the command connects to the Service."""
    command = ("exec", DEPLOYMENT, "--", "rdma-webhook", "certs", "status")
    report = json.loads(webhook.kubectl(*command, "-o", "json"))

    assert report["healthy"], report
    assert [handshake["address"] for handshake in report["handshakes"]] == [
        f"{NAME}.{NAME}.svc:443"
    ]
