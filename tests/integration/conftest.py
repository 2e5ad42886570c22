"""The real server over TLS, in a thread of the test or in a process of its own."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.integration.serving import Certificates, Process, Running, certificates, fabrics


@pytest.fixture(scope="session")
def tls(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    """Certificates for the loopback, issued for this run."""
    return certificates(tmp_path_factory.mktemp("tls"))


@pytest.fixture(scope="module")
def server(tls: Certificates, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """Run a server for one module, with a fabrics file of its own."""
    folder = tmp_path_factory.mktemp("server")
    with Running(tls, fabrics(folder)) as running:
        yield running


@pytest.fixture
def process(tls: Certificates, tmp_path: Path) -> Iterator[Process]:
    """Run a server in a process of its own."""
    with Process(tls, fabrics(tmp_path), tmp_path / "log", os.environ) as running:
        yield running
