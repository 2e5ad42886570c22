"""Shared fixtures: an installed webhook, an image, and a namespace for each file."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.cluster.cluster import Cluster
from tests.cluster.install import Webhook
from tests.e2e.controllers.lab import WorkloadNamespace, opened


@pytest.fixture(scope="module")
def lab(
    cluster: Cluster, webhook: Webhook, image: str, request: pytest.FixtureRequest
) -> Iterator[WorkloadNamespace]:
    """Open a namespace for the tests of one file."""
    cluster.skip_if_existing("an image for workloads on its nodes")
    assert webhook.cluster is cluster
    with opened(cluster, image, request.path.stem.replace("_", "-")) as lab:
        yield lab
