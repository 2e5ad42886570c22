"""Replicas whose clocks are wrong, and an API server whose clock is right."""

from __future__ import annotations

import pytest

from tests.e2e.certs.conftest import Start
from tests.e2e.certs.lab import SERVER_NAME, Installation, all_ready
from tests.waiting import until


@pytest.mark.parametrize(("first", "second"), [(600, -600), (-600, 600)])
def test_ten_minutes_ahead_and_behind(
    lab: Installation, start: Start, first: int, second: int
) -> None:
    """Whichever replica makes the CA, all use it, and the API server verifies each of them."""
    lab.configure()
    maker = start(1, clock=first)
    all_ready(maker)
    until(lab.patched)
    other = start(1, clock=second)  # now the Service's only endpoint
    all_ready(other)
    until(lab.patched)
    right = start(1)
    all_ready(right)
    until(lab.patched)

    assert lab.bundle == lab.secret["data"]["ca.crt"]
    for replica in (*maker, *other, *right):
        assert replica.handshake(lab.bundle, SERVER_NAME)[0] == SERVER_NAME
