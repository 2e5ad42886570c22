"""Shared fixtures: a namespace for each test."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count

import pytest

from tests.cluster.install import Webhook
from tests.e2e.live.lab import ChangingNamespace

#: Each test gets a new name, since a namespace that is being deleted cannot be used again.
_NUMBERS = count()


@pytest.fixture
def lab(webhook: Webhook) -> Iterator[ChangingNamespace]:
    """Make a labeled namespace for one test."""
    lab = ChangingNamespace(webhook, f"live-{next(_NUMBERS)}")
    lab.begin()
    yield lab
    lab.end()
