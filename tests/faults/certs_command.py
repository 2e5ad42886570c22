"""`rdma-webhook certs`, as whoever looks after the cluster runs it."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

from tests.cluster.images import ROOT
from tests.cluster.install import NAME, Webhook


def certs(webhook: Webhook, *arguments: str) -> Any:
    """Run it, and return what it shows; its exit code must be 0 or, where not all is well, 1."""
    command = (sys.executable, "-m", "webhook", "certs", *arguments)
    where = (f"--kubeconfig={webhook.cluster.kubeconfig}", f"--namespace={NAME}")
    ran = subprocess.run(
        (*command, *where, "--output=json"), cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert ran.returncode < 2, ran.stderr
    return json.loads(ran.stdout)


def served(webhook: Webhook, count: int) -> int:
    """Check that the Service has so many endpoints, and shake hands with each; return how many."""
    shaken = certs(webhook, "verify")["handshakes"]
    assert [one["problem"] for one in shaken] == [""] * count, shaken
    return len(shaken)
