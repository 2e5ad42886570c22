"""Self-managed certificates, with an API server of two objects that can also fail.

tests/e2e has a real one; this one is for failures that a real one does not produce on demand.
"""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.integration.objects_api import ApiServer
from tests.integration.replica import Replica
from tests.unit.certs.objects import CONFIGURATION, SECRET, SECRETS
from tests.waiting import until
from webhook.errors import ClusterError
from webhook.kube.client import Client

NAME = "rdma-webhook.rdma-webhook.svc"


@pytest.fixture
def api(tmp_path: Path) -> Iterator[ApiServer]:
    """Run an empty API server."""
    with ApiServer(tmp_path) as running:
        yield running


def test_waits_for_the_configuration_and_is_then_trusted(api: ApiServer, tmp_path: Path) -> None:
    """No crash loop: listeners are up, `/readyz` names what is missing, no restart is needed."""
    with Replica(api.kubeconfig, tmp_path, "rdma-webhook") as replica:
        missing = "[-] certificate: MutatingWebhookConfiguration zz-rdma-webhook does not exist yet"
        until(lambda: missing in replica.ready()[1])
        assert replica.ready()[0] == 503
        until(lambda: bool(replica.lines("certificate not trusted yet")))
        api.objects.configure()
        until(lambda: replica.ready()[0] == 200)
        # The replica may have read the second configuration before the first was created.
        until(lambda: bool(api.objects.bundle))
        names = replica.handshake(api.objects.bundle, NAME)
        assert names[0] == NAME
        until(lambda: bool(replica.lines("certificate trusted")))
        assert len(replica.lines("certificate not trusted yet")) == 1


def test_an_api_server_that_is_not_up_yet(tmp_path: Path) -> None:
    """If the API server is not up yet, as on a node that starts with it, the replica retries."""
    with ApiServer(tmp_path) as api:
        port = api._server.server_address[1]
    with Replica(api.kubeconfig, tmp_path, "rdma-webhook") as replica:
        problem = f"cannot reach the API server http://127.0.0.1:{port}: Connection refused"
        until(lambda: problem in replica.ready()[1])
        time.sleep(0.5)
        assert replica.ready()[0] == 503
    lines = replica.lines("certificate not trusted yet")
    assert {line["level"] for line in lines} == {"warning"}
    problems = [line["problem"] for line in lines]
    assert len(set(problems)) == len(problems)  # each problem is logged once, however many retries


#: The webhook, with a thread that an exception ends.
FAILING_THREAD = """\
import sys
from webhook.serve.sources.permission_check import PermissionCheck
PermissionCheck.attempt = lambda _: 1 / 0
from webhook.cli import main
sys.exit(main())
"""


def test_a_thread_that_fails_is_in_the_log(api: ApiServer, tmp_path: Path) -> None:
    """The log and a metric report a thread that an exception ended; the replica keeps serving."""
    replica = Replica(api.kubeconfig, tmp_path, "rdma-webhook")
    replica._command[1:3] = ["-c", FAILING_THREAD]
    with replica:
        until(lambda: bool(replica.lines("internal error")))
        assert "rdma_webhook_internal_errors_total 1.0" in replica.get("/metrics")[1]
    (line,) = replica.lines("internal error")
    assert (line["level"], line["thread"], line["error"]) == ("error", "guard", "ZeroDivisionError")
    assert line["trace"][-1].startswith("<string>:")


def test_requests(api: ApiServer) -> None:
    """All writes are in the webhook's name; apply is server-side and forced; 409 is an answer."""
    api.objects.configure()
    cluster = Client(api.kubeconfig)
    body: dict[str, Any] = {"metadata": {"name": "rdma-webhook-ca"}}

    assert cluster.read(SECRET) is None
    assert [cluster.create(SECRETS, body), cluster.create(SECRETS, body)] == [True, False]
    stored = cluster.read(SECRET)
    assert stored is not None
    assert [cluster.replace(SECRET, stored), cluster.replace(SECRET, stored)] == [True, False]
    mine: dict[str, Any] = {"metadata": {"uid": "7e57", "resourceVersion": "1"}, "webhooks": []}
    assert [cluster.apply(CONFIGURATION, mine), cluster.apply(CONFIGURATION, mine)] == [True, False]
    manager = "?fieldManager=rdma-webhook"
    assert api.asked == [
        ("GET", SECRET, None),
        ("POST", f"{SECRETS}{manager}", "application/json"),
        ("POST", f"{SECRETS}{manager}", "application/json"),
        ("GET", SECRET, None),
        ("PUT", f"{SECRET}{manager}", "application/json"),
        ("PUT", f"{SECRET}{manager}", "application/json"),
        ("PATCH", f"{CONFIGURATION}{manager}&force=true", "application/apply-patch+yaml"),
        ("PATCH", f"{CONFIGURATION}{manager}&force=true", "application/apply-patch+yaml"),
    ]


@pytest.mark.parametrize(
    ("status", "body", "message"),
    [
        (403, b'{"message": "secrets is\\nforbidden"}', "answered 403: secrets is forbidden"),
        (409, b'{"reason": "Conflict", "message": "uid"}', "answered 409: uid"),
        (500, b"<html>", "answered 500: no reason given"),
        (503, b"[]", "answered 503: no reason given"),
        (500, json.dumps({"message": "x" * 999}).encode(), f"answered 500: {'x' * 300}"),
    ],
)
def test_refusals_are_a_single_line(api: ApiServer, status: int, body: bytes, message: str) -> None:
    """An error is the API server's message in one line, cut to a length, without the request."""
    api.instead = (status, body)
    with pytest.raises(ClusterError, match=f"^the API server {re.escape(message)}$"):
        Client(api.kubeconfig).create(SECRETS, {"data": {"ca.key": "hunter2"}})


def test_an_invalid_kubeconfig(tmp_path: Path) -> None:
    """The error names the file, and quotes nothing from it: such files contain tokens."""
    file = tmp_path / "config"
    file.write_text("hunter2")
    message = f"cannot connect with {file}: it is not a kubeconfig (TypeError)"
    with pytest.raises(ClusterError, match=f"^{re.escape(message)}$"):
        Client(file)


def test_outside_a_cluster_there_is_no_service_account(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the variables that the kubelet sets in a pod, the error names what is missing."""
    monkeypatch.delitem(os.environ, "KUBERNETES_SERVICE_HOST", raising=False)
    with pytest.raises(
        ClusterError,
        match=r"^cannot connect with the service account: Service host/port is not set\.$",
    ):
        Client()
