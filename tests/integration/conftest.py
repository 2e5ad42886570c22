"""The real server over TLS, in a thread of the test's process or in its own process."""

from __future__ import annotations

import os
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from tests.integration.serving import Certificates, Process, Running, certificates, fabrics


@pytest.fixture(scope="session")
def tls(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    """Issue certificates for the loopback, for this run, however long it takes."""
    return certificates(tmp_path_factory.mktemp("tls"), timedelta(days=1))


@pytest.fixture(scope="module")
def server(tls: Certificates, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """Run a server for one module, with its own fabrics file."""
    folder = tmp_path_factory.mktemp("server")
    with Running(tls, fabrics(folder)) as running:
        yield running


@pytest.fixture
def process(tls: Certificates, tmp_path: Path) -> Iterator[Process]:
    """Run a server in its own process."""
    with Process(tls, fabrics(tmp_path), tmp_path / "log", os.environ) as running:
        yield running
