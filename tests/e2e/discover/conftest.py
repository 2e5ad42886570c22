"""Shared fixtures: a namespace for each file. The webhook need not be installed."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.cluster.cluster import Cluster
from tests.e2e.asking import apply, namespace
from tests.e2e.installed.space import Space
from tests.waiting import until


@pytest.fixture(scope="module")
def space(cluster: Cluster, image: str, request: pytest.FixtureRequest) -> Iterator[Space]:
    """Make a namespace for the tests of one file."""
    cluster.need("an image with a shell on its nodes")
    name = request.module.__name__.rpartition(".")[2].replace("_", "-")
    made = Space(cluster, name, image)
    apply(cluster, namespace(name, None))
    until(lambda: "default" in made.kubectl("get", "serviceaccounts", "--output=name"))
    yield made
    cluster.kubectl("delete", "namespace", name, "--wait=false")
