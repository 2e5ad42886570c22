"""The cluster that tests share, and what is in it: one for all folders of a pytest run.

Its Kubernetes is the minor that K8S names. With E2E_KUBECONFIG it is one that exists, see
`existing`: what is installed there is taken away at the end.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from pathlib import Path

import pytest

from tests.cluster import progress
from tests.cluster.binaries import build_all
from tests.cluster.cluster import ERRORS, Cluster, running
from tests.cluster.existing import IMAGE, KUBECONFIG, ExistingCluster, existing
from tests.cluster.images import mpi_image
from tests.cluster.install import CONFIGURATION, LAB, NAME, Webhook, clear, equip, install
from tests.cluster.missing import missing, require
from tests.cluster.processes import ClusterError
from tests.cluster.versions import DEFAULT_MINOR

#: Where the logs of a cluster go in which a test failed: they end with it otherwise.
_LOGS = Path(__file__).parents[2] / ".cache" / "e2e-logs"


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark what needs a cluster; where none can stand leave one such test: its skip tells why."""
    needing = [item for item in items if "cluster" in getattr(item, "fixturenames", ())]
    for item in needing:
        item.add_marker("cluster")
    others = needing[1:]
    if others and not os.environ.get("CI") and existing() is None and missing():
        config.hook.pytest_deselected(items=others)
        items[:] = [item for item in items if item not in set(others)]


@pytest.fixture(scope="session")
def cluster(request: pytest.FixtureRequest) -> Iterator[Cluster]:
    """Give a cluster of the minor that K8S names; skip, in CI fail, where it cannot stand here.

    Where E2E_KUBECONFIG names one, give that.
    """
    kubeconfig = existing()
    if kubeconfig is None:
        require()
    if int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1")) > 1:
        pytest.fail("these tests share one cluster: run them with -n 0", pytrace=False)
    with ExitStack() as stack:
        if kubeconfig is not None:
            yield _attach(stack, kubeconfig)
            return
        started = _start(stack, request.config)
        yield started
        if request.session.testsfailed:
            kept = _LOGS / str(started.network.number)  # another run may be beside this one
            shutil.rmtree(kept, ignore_errors=True)
            shutil.copytree(started.logs, kept)
            with _shown(request.config):
                progress.say(f"\nthe logs of the cluster's programs: {kept}")


def _start(stack: ExitStack, config: pytest.Config) -> Cluster:
    """Start the cluster; where that fails, say so once and not for each test."""
    minor = os.environ.get("K8S") or DEFAULT_MINOR
    try:
        with _shown(config):  # it may take minutes where programs have to be built
            build_all(minor)
            return stack.enter_context(running(minor))
    except ERRORS as error:
        pytest.exit(f"there is no cluster to test on: {error}", returncode=1)


def _attach(stack: ExitStack, kubeconfig: Path) -> ExistingCluster:
    """Ask a cluster that exists, and leave nothing there; what it has of ours already stays."""
    image = os.environ.get(IMAGE)
    if not image:
        pytest.exit(f"{KUBECONFIG} needs {IMAGE}: an image that the nodes have or can pull", 1)
    try:
        cluster = ExistingCluster(kubeconfig, image)
        ours = ("get", f"namespace/{NAME}", f"namespace/{LAB}", CONFIGURATION)
        there = cluster.kubectl(*ours, "--ignore-not-found", "--output=name").split()
    except ClusterError as error:
        pytest.exit(f"{KUBECONFIG}: {error}", 1)
    if there:
        taken = ", ".join(there)
        pytest.exit(f"{KUBECONFIG}: {taken} is there, and the tests would replace and delete it", 1)
    stack.callback(clear, cluster)
    return cluster


@pytest.fixture(scope="session")
def a100_node(cluster: Cluster) -> str:
    """Give the real node V100s, add a fake one with A100s, and return its name."""
    cluster.need("nodes with GPUs of two kinds, made up")
    return equip(cluster)


@pytest.fixture(scope="session")
def webhook(cluster: Cluster, request: pytest.FixtureRequest) -> Webhook:
    """Install the webhook, with fabrics for V100s and A100s; who takes it away installs it again.

    Pods that shall run on the real node need nvidia.com/v100 and imagePullPolicy Never.
    """
    if existing() is None:
        request.getfixturevalue("a100_node")
    with _shown(request.config):
        return install(cluster)


@pytest.fixture(scope="session")
def image(cluster: Cluster, request: pytest.FixtureRequest) -> str:
    """Give the node an image for workloads, with Open MPI and `rank`, and return its name.

    In a cluster that exists pods with it can be created, and never start: `Space.started` skips.
    """
    if existing() is not None:
        return "rdma-webhook.example/none:none"
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
