"""Shared fixtures: the installation, an image for workloads, a namespace for each file."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.cluster.install import Webhook
from tests.e2e.documents import make_namespaces, namespace
from tests.e2e.installed.space import Space


@pytest.fixture(scope="module")
def space(webhook: Webhook, image: str, request: pytest.FixtureRequest) -> Iterator[Space]:
    """Make a labeled namespace for the tests of one file."""
    name = request.module.__name__.rpartition(".")[2].replace("_", "-")
    space = Space(webhook.cluster, name, image)
    make_namespaces(space.cluster, namespace(name, "true"))
    yield space
    space.cluster.kubectl("delete", "namespace", name, "--wait=false")
