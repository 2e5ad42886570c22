"""The remedy for a stolen token in docs/security.md, whatever the thief has left."""

from __future__ import annotations

import threading
import time
from base64 import b64encode

from tests.cluster.install import CONFIGURATION, DEPLOYMENT, NAME, Webhook, called
from tests.e2e.documents import Document
from tests.e2e.installed.test_stolen_token import SECRETS, Thief
from tests.e2e.wire import JSON
from tests.waiting import PATIENCE, until

SECRET = f"{SECRETS}/{NAME}-ca"
ACCOUNT = "manifests/base/serviceaccount.yaml"
#: Seconds for which an API server remembers that a token was valid.
REMEMBERED = 10
GARBAGE = b64encode(b"garbage").decode()


def _spoil(thief: Thief) -> int:
    """Write a Secret that nobody can use; return the status."""
    response = thief.request("GET", SECRET, None, JSON)
    if response.code != 200:
        return response.code
    secret: Document = {**response.object, "data": {"ca.crt": GARBAGE, "ca.key": GARBAGE}}
    return thief.request("PUT", SECRET, secret, JSON).code


def test_the_remedy_ends_what_a_thief_has_left(webhook: Webhook) -> None:
    """Without restarts, the replicas would have no valid token; they cannot use that Secret."""
    thief, before = Thief(webhook), set(webhook.replicas())

    def spoil() -> None:
        while _spoil(thief) != 401:
            pass

    spoiling = threading.Thread(target=spoil, daemon=True)
    spoiling.start()
    webhook.kubectl("delete", "serviceaccount", NAME)
    spoiling.join(timeout=PATIENCE)
    assert not spoiling.is_alive()
    time.sleep(REMEMBERED)
    webhook.kubectl("delete", "secret", f"{NAME}-ca")
    webhook.kubectl("apply", f"--filename={ACCOUNT}")
    webhook.kubectl("rollout", "restart", DEPLOYMENT)
    webhook.kubectl("rollout", "status", DEPLOYMENT, "--timeout=300s")
    until(lambda: not before & set(webhook.replicas()))
    assert GARBAGE not in webhook.read(SECRET)
    assert "caBundle" in webhook.kubectl("get", CONFIGURATION, "--output=json")
    called(webhook.cluster)
