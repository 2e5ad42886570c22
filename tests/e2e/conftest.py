"""One cluster for all tests of this folder: `make test-e2e`, `make test-e2e K8S=1.34`."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from pathlib import Path

import pytest

from tests.cluster.cluster import Cluster, running
from tests.cluster.images import mpi_image
from tests.cluster.install import Webhook, equip, install
from tests.cluster.missing import require
from tests.cluster.versions import DEFAULT_MINOR

_HERE = Path(__file__).parent
#: Where the logs of a cluster go in which a test failed: they end with it otherwise.
_LOGS = _HERE.parents[1] / ".cache" / "e2e-logs"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what needs a cluster: this folder's tests."""
    for item in items:
        if _HERE in item.path.parents:
            item.add_marker("cluster")


@pytest.fixture(scope="session")
def cluster(request: pytest.FixtureRequest) -> Iterator[Cluster]:
    """Give a cluster of the minor that K8S names; skip, in CI fail, where it cannot stand here."""
    require()
    if int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1")) > 1:
        pytest.fail("these tests share one cluster: run them with -n 0", pytrace=False)
    with ExitStack() as stack:
        with _shown(request.config):  # it may take minutes where programs have to be built
            minor = os.environ.get("K8S") or DEFAULT_MINOR
            started = stack.enter_context(running(minor))
        yield started
        if request.session.testsfailed:
            shutil.copytree(started.logs, _LOGS, dirs_exist_ok=True)


@pytest.fixture(scope="session")
def a100_node(cluster: Cluster) -> str:
    """Give the real node V100s, add a fake one with A100s, and return its name."""
    return equip(cluster)


@pytest.fixture(scope="session")
def webhook(cluster: Cluster, a100_node: str, request: pytest.FixtureRequest) -> Webhook:
    """Install the webhook, with fabrics for V100s and A100s; who takes it away installs it again.

    Pods that shall run on the real node need nvidia.com/v100 and imagePullPolicy Never.
    """
    assert a100_node
    with _shown(request.config):
        return install(cluster)


@pytest.fixture(scope="session")
def image(cluster: Cluster, request: pytest.FixtureRequest) -> str:
    """Give the node an image for workloads, with Open MPI and `rank`, and return its name."""
    with _shown(request.config):
        made = mpi_image()
    cluster.load(made.archive)
    return made.name


@contextmanager
def _shown(config: pytest.Config) -> Iterator[None]:
    """Let what is printed through."""
    capturing = config.pluginmanager.get_plugin("capturemanager")
    with capturing.global_and_fixture_disabled() if capturing else nullcontext():
        yield
