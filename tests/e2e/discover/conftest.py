"""Shared fixtures: a namespace for each file. The webhook need not be installed."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.cluster.cluster import Cluster
from tests.e2e.documents import make_namespaces, namespace
from tests.e2e.installed.space import Space


@pytest.fixture(scope="module")
def space(cluster: Cluster, image: str, request: pytest.FixtureRequest) -> Iterator[Space]:
    """Make a namespace for the tests of one file."""
    cluster.skip_if_existing("an image with a shell on its nodes")
    name = request.module.__name__.rpartition(".")[2].replace("_", "-")
    space = Space(cluster, name, image)
    make_namespaces(cluster, namespace(name, None))
    yield space
    cluster.kubectl("delete", "namespace", name, "--wait=false")
