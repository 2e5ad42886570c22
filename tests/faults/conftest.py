"""Shared fixtures: a namespace, pods created in it at a fixed rate, and a table at the end.

The end-to-end tests share their cluster and webhook (tests/cluster/fixtures.py).
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager
from itertools import count
from pathlib import Path
from typing import Protocol

import pytest

from tests.cluster.install import Webhook
from tests.e2e.documents import make_namespaces, namespace
from tests.e2e.installed.load import Creations, creating
from tests.e2e.installed.space import Space
from tests.e2e.live.lab import ChangingNamespace
from tests.faults.scale import SCALE

_FIGURES = pytest.StashKey[list[tuple[str, str]]]()
_NUMBERS = count()


class Figure(Protocol):
    """Adds a line to the table."""

    def __call__(self, fault: str, measured: str) -> None:
        """Add the measurements of a fault."""


class Load(Protocol):
    """Creates pods while a block runs."""

    def __call__(self) -> AbstractContextManager[Creations]:
        """Create pods during the block; the figures exist at its end."""


@pytest.fixture
def figure(request: pytest.FixtureRequest) -> Figure:
    """Keep figures for the table at the end, and print each at once."""
    rows = request.config.stash.setdefault(_FIGURES, [])

    def add(fault: str, measured: str) -> None:
        print(f"{fault}: {measured}")  # noqa: T201
        rows.append((fault, measured))

    return add


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    """Print the table."""
    rows = config.stash.get(_FIGURES, [])
    if rows:
        terminalreporter.section("faults")
        width = max(len(fault) for fault, _ in rows)
        for fault, measured in rows:
            terminalreporter.line(f"{fault:<{width}}  {measured}")


@pytest.fixture(scope="session")
def space(webhook: Webhook) -> Iterator[Space]:
    """Make a labeled namespace; its pods are never stored, so their image need not exist."""
    space = Space(webhook.cluster, "faults", "example.com/none")
    make_namespaces(space.cluster, namespace(space.name, "true"))
    yield space
    space.cluster.kubectl("delete", "namespace", space.name, "--wait=false")


@pytest.fixture
def load(space: Space, tmp_path: Path) -> Load:
    """Return a function that creates opted-in pods during a block."""
    pod = space.pod("", "nvidia.com/v100")
    pod["metadata"] |= {"name": None, "generateName": "load-"}
    return lambda: creating(space, pod, tmp_path, SCALE.rate)


@pytest.fixture
def lab(webhook: Webhook) -> Iterator[ChangingNamespace]:
    """Make a labeled namespace for one test, which adds and removes rules."""
    lab = ChangingNamespace(webhook, f"faults-{next(_NUMBERS)}")
    lab.begin()
    yield lab
    lab.end()
