"""What these tests share: a namespace of their own for each, and how a replica is asked."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count

import pytest

from tests.cluster.install import Webhook
from tests.e2e.live.lab import Lab

#: A namespace that is on its way out is none to begin with.
_NUMBERS = count()


@pytest.fixture
def lab(webhook: Webhook) -> Iterator[Lab]:
    """Make a labelled namespace for one test."""
    made = Lab(webhook, f"live-{next(_NUMBERS)}")
    made.begin()
    yield made
    made.end()
