"""`rdma-webhook certs`, as an administrator of the cluster runs it."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

from tests.cluster.images import ROOT
from tests.cluster.install import NAME, Webhook
from tests.waiting import until


def certs(webhook: Webhook, *arguments: str) -> Any:
    """Run the command, and return its JSON; its exit code must be 0, or 1 if there are problems."""
    command = (sys.executable, "-m", "webhook", "certs", *arguments)
    installation = (f"--kubeconfig={webhook.cluster.kubeconfig}", f"--namespace={NAME}")
    ran = subprocess.run(
        (*command, *installation, "--output=json"),
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode < 2, ran.stderr
    return json.loads(ran.stdout)


def served(webhook: Webhook, count: int) -> int:
    """Wait until the Service has `count` endpoints, check their handshakes; return the count."""
    handshakes: list[Any] = []

    def are_listed() -> bool:
        # Endpoints follow the readiness of pods after a moment.
        handshakes[:] = certs(webhook, "verify")["handshakes"]
        return len(handshakes) == count

    until(are_listed, lambda: handshakes)
    assert [handshake["problem"] for handshake in handshakes] == [""] * count, handshakes
    return len(handshakes)
