"""`rdma-webhook certs` for the installed manifests: from outside, and in a pod."""

from __future__ import annotations

import json

from tests.cluster.install import DEPLOYMENT, NAME, Webhook
from tests.e2e.certs.command import certs


def test_from_outside(webhook: Webhook) -> None:
    """With an administrator's kubeconfig it shows the Secret, `caBundle` and each replica."""
    code, told = certs("status", "--kubeconfig", str(webhook.cluster.kubeconfig))

    assert (code, told["good"], told["phase"]) == (0, True, "settled"), told
    assert len(told["handshakes"]) == len(webhook.replicas())
    name = f"{NAME}.{NAME}.svc"
    assert {(one["issuer"], one["names"][0]) for one in told["handshakes"]} == {("current", name)}


def test_within_a_pod(webhook: Webhook) -> None:
    """A replica's ServiceAccount may not list endpoints, so the command connects to the Service."""
    command = ("exec", DEPLOYMENT, "--", "rdma-webhook", "certs", "status")
    told = json.loads(webhook.kubectl(*command, "-o", "json"))

    assert told["good"], told
    assert [one["address"] for one in told["handshakes"]] == [f"{NAME}.{NAME}.svc:443"]
