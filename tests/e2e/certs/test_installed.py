"""`rdma-webhook certs` for the installed manifests: from outside, and in a pod."""

from __future__ import annotations

import json

from tests.cluster.install import DEPLOYMENT, NAME, Webhook
from tests.e2e.certs.command import certs


def test_from_outside(webhook: Webhook) -> None:
    """With an administrator's kubeconfig it shows the Secret, `caBundle` and each replica."""
    code, report = certs("status", "--kubeconfig", str(webhook.cluster.kubeconfig))

    assert (code, report["healthy"], report["phase"]) == (0, True, "settled"), report
    assert len(report["handshakes"]) == len(webhook.replicas())
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
