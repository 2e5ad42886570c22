"""Certificates made by five replicas at once, and exchanged under load.

Lifetimes are seconds here, in a separate installation that begins and ends empty.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator

import pytest

from tests.cluster.install import CONFIGURATION, NAME, VALIDATION, Webhook, end_replicas, install
from tests.faults.certs_command import certs, served
from tests.faults.change import authorities, count_of, trusted
from tests.faults.conftest import Figure, Load
from tests.faults.counts import check_none_lost
from tests.faults.scale import SCALE
from tests.waiting import until

REPLICAS = 5
#: New leaves of each replica: one of the next CA, one for its age.
LEAVES = 2
#: A third of a leaf's life is left when it is renewed: six seconds, which a busy machine needs.
ARGUMENTS = ("--leaf-lifetime=18s", "--ca-interval=1s", "--ca-propagation=3s")
PATCH = [
    {"op": "replace", "path": "/spec/replicas", "value": REPLICAS},
    *(
        {"op": "add", "path": "/spec/template/spec/containers/0/args/-", "value": argument}
        for argument in ARGUMENTS
    ),
]


@pytest.fixture(scope="module", autouse=True)
def emptied(webhook: Webhook) -> Iterator[None]:
    """Begin and end without a replica, a Secret, or a webhook configuration."""
    _empty(webhook)
    yield
    _empty(webhook)
    install(webhook.cluster, webhook.fabrics)


def _empty(webhook: Webhook) -> None:
    # So no pod is rejected; and a CA that is left in a caBundle is trusted on.
    webhook.cluster.kubectl("delete", CONFIGURATION, VALIDATION, "--ignore-not-found")
    end_replicas(webhook.cluster)
    webhook.kubectl("delete", "secret", f"{NAME}-ca", "--ignore-not-found")


def test_five_replicas_start_at_once(webhook: Webhook, figure: Figure) -> None:
    """There is one CA and one Secret, and every handshake is verified."""
    began = time.monotonic()
    install(webhook.cluster, webhook.fabrics, [PATCH])
    took = time.monotonic() - began
    shaken = served(webhook, REPLICAS)
    secrets = webhook.kubectl("get", "secrets", "--output=name").split()
    assert secrets == [f"secret/{NAME}-ca"]
    assert authorities(webhook).keys() == {"ca.crt", "ca.key"}
    assert authorities(webhook)["ca.crt"] == trusted(webhook)
    assert count_of(trusted(webhook)) == 1
    figure(
        "five replicas start at once",
        f"1 CA, 1 Secret, {shaken} of {REPLICAS} handshakes verify; ready after {took:.0f} s",
    )


def test_certificates_are_exchanged(webhook: Webhook, load: Load, figure: Figure) -> None:
    """Leaves renew every twelve seconds, the CA by `certs rotate`: no pod is lost.

    Pods are created until each replica has had two new leaves, and enough pods were decided,
    however long that takes.
    """
    first, leaves, decided = _issuer(webhook), _leaves(webhook), _decided(webhook)
    seconds = []
    with load() as creations:
        creations.continue_for(1)
        for _ in range(SCALE.rotations):
            began, before = time.monotonic(), _issuer(webhook)
            certs(webhook, "rotate")
            until(lambda before=before: _issuer(webhook) != before)  # type: ignore[misc]
            until(lambda: _issuers(webhook) == {"current"})
            if SCALE.waits_for_retirement:
                until(lambda: "previous.crt" not in authorities(webhook))
                until(lambda: count_of(trusted(webhook)) == 1)
            seconds.append(round(time.monotonic() - began))
        until(lambda: min(_renewed(webhook, leaves).values()) >= LEAVES)
        until(lambda: _decided(webhook) >= decided + SCALE.pods)
        time.sleep(SCALE.after_repair)
    measured = check_none_lost(creations)
    assert served(webhook, REPLICAS) == REPLICAS
    assert _issuer(webhook) != first
    renewed = sum(_renewed(webhook, leaves).values())
    until_what = (
        "until the old CA was gone"
        if SCALE.waits_for_retirement
        else "until no leaf was of the old"
    )
    figure("leaf and CA rotation", f"{renewed} leaves, CA in {seconds} s {until_what}: {measured}")


def _issuer(webhook: Webhook) -> str:
    return authorities(webhook)["ca.crt"]


def _issuers(webhook: Webhook) -> set[str]:
    return {handshake["issuer"] for handshake in certs(webhook, "verify")["handshakes"]}


def _leaves(webhook: Webhook) -> Counter[str]:
    """Return the number of leaves that each replica has issued to itself."""
    line = '"msg":"certificate loaded"'
    path = f"/api/v1/namespaces/{NAME}/pods"
    return Counter(
        {
            replica: webhook.read(f"{path}/{replica}/log").count(line)
            for replica in webhook.replicas()
        }
    )


def _decided(webhook: Webhook) -> int:
    """Return the number of pods that all replicas have decided so far."""
    return webhook.counted("rdma_webhook_requests_total", "endpoint")["mutate",]


def _renewed(webhook: Webhook, before: Counter[str]) -> dict[str, int]:
    return {replica: count - before[replica] for replica, count in _leaves(webhook).items()}
