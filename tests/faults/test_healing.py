"""Damage is repaired while pods are created."""

from __future__ import annotations

import time
from base64 import b64encode
from collections.abc import Callable

import pytest

from certs.issue import issue_ca
from tests.cluster.install import Webhook
from tests.e2e.live.lab import ChangingNamespace
from tests.faults.change import CONFIGURATION, SECRET, authorities, delete, patch, trusted
from tests.faults.conftest import Figure, Load
from tests.faults.counts import check_none_lost, lost
from tests.waiting import until

_BUNDLE = "/webhooks/0/clientConfig/caBundle"


def _trust(webhook: Webhook, bundle: bytes) -> None:
    value = b64encode(bundle).decode()
    patch(webhook, CONFIGURATION, {"op": "replace", "path": _BUNDLE, "value": value})


def _garbage(webhook: Webhook) -> None:
    patch(webhook, SECRET, {"op": "replace", "path": "/data", "value": {"ca.crt": "eA=="}})


SECRETS: dict[str, Callable[[Webhook], None]] = {
    "Secret deleted": lambda webhook: delete(webhook, SECRET),
    "Secret garbage": _garbage,
}
BUNDLES: dict[str, Callable[[Webhook], None]] = {
    "caBundle emptied": lambda webhook: patch(
        webhook, CONFIGURATION, {"op": "remove", "path": _BUNDLE}
    ),
    "caBundle of another CA": lambda webhook: _trust(webhook, issue_ca().certificate),
}


@pytest.mark.parametrize("fault", [*SECRETS, *BUNDLES])
def test_damage_is_repaired(
    webhook: Webhook, lab: ChangingNamespace, load: Load, figure: Figure, fault: str
) -> None:
    """The repair keeps the CA: a broken Secret fails no pod, nor does a repaired `caBundle`."""
    secret, bundle = authorities(webhook), trusted(webhook)
    with load() as creations:
        creations.continue_for(1)
        {**SECRETS, **BUNDLES}[fault](webhook)
        began = time.monotonic()
        until(lambda: (authorities(webhook), trusted(webhook)) == (secret, bundle))
        took = time.monotonic() - began
        until(lambda: not lab.ask().refusal)
    figure(fault, f"healed after {took:.1f} s; {lost(creations)}, over {creations.blocked:.1f} s")
    if fault in SECRETS:
        check_none_lost(creations)
    else:
        assert creations.created == creations.patched > 0
    with load() as later:
        later.continue_for(1)
    check_none_lost(later)
