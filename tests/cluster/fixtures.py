"""The cluster that tests share, with the webhook: one for all folders of a pytest run.

K8S sets its Kubernetes minor. With E2E_KUBECONFIG it is an existing cluster, see `existing`:
what the tests install there is removed at the end.
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

#: Keeps the logs of a cluster in which a test failed; otherwise they are removed with it.
_LOGS = Path(__file__).parents[2] / ".cache" / "e2e-logs"


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark tests that need a cluster; if none can run here, keep one: its skip gives the reason."""
    needing = [item for item in items if "cluster" in getattr(item, "fixturenames", ())]
    for item in needing:
        item.add_marker("cluster")
    redundant = needing[1:]
    if redundant and not os.environ.get("CI") and existing() is None and missing():
        config.hook.pytest_deselected(items=redundant)
        items[:] = [item for item in items if item not in set(redundant)]


@pytest.fixture(scope="session")
def cluster(request: pytest.FixtureRequest) -> Iterator[Cluster]:
    """Start a cluster of the minor in K8S; if none can run here, skip, or fail in CI.

    If E2E_KUBECONFIG names a cluster, use that.
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
            logs = _LOGS / str(started.network.number)  # by number: another run may be under way
            shutil.rmtree(logs, ignore_errors=True)
            shutil.copytree(started.logs, logs)
            with _uncaptured(request.config):
                progress.say(f"\nthe logs of the cluster's programs: {logs}")


def _start(stack: ExitStack, config: pytest.Config) -> Cluster:
    """Start the cluster; if that fails, exit with the reason once, not for each test."""
    minor = os.environ.get("K8S") or DEFAULT_MINOR
    try:
        with _uncaptured(config):  # building the programs may take minutes
            build_all(minor)
            return stack.enter_context(running(minor))
    except ERRORS as error:
        pytest.exit(f"there is no cluster to test on: {error}", returncode=1)


def _attach(stack: ExitStack, kubeconfig: Path) -> ExistingCluster:
    """Connect to an existing cluster, and clean up at the end; refuse one that has our objects."""
    image = os.environ.get(IMAGE)
    if not image:
        pytest.exit(f"{KUBECONFIG} needs {IMAGE}: an image that the nodes have or can pull", 1)
    try:
        cluster = ExistingCluster(kubeconfig, image)
        ours = ("get", f"namespace/{NAME}", f"namespace/{LAB}", CONFIGURATION)
        present = cluster.kubectl(*ours, "--ignore-not-found", "--output=name").split()
    except ClusterError as error:
        pytest.exit(f"{KUBECONFIG}: {error}", 1)
    if present:
        names = ", ".join(present)
        pytest.exit(f"{KUBECONFIG}: {names} is there, and the tests would replace and delete it", 1)
    stack.callback(clear, cluster)
    return cluster


@pytest.fixture(scope="session")
def a100_node(cluster: Cluster) -> str:
    """Give the real node V100s, add a fake one with A100s, and return the fake node's name."""
    cluster.skip_if_existing("nodes with GPUs of two kinds, made up")
    return equip(cluster)


@pytest.fixture(scope="session")
def webhook(cluster: Cluster, request: pytest.FixtureRequest) -> Webhook:
    """Install the webhook, with fabrics for V100s and A100s; tests that remove it reinstall it.

    Pods for the real node need nvidia.com/v100 and imagePullPolicy Never.
    """
    if existing() is None:
        request.getfixturevalue("a100_node")
    with _uncaptured(request.config):
        return install(cluster)


@pytest.fixture(scope="session")
def image(cluster: Cluster, request: pytest.FixtureRequest) -> str:
    """Load an image for workloads, with Open MPI and `rank`, onto the node, and return its name.

    In an existing cluster, pods with it can be created but never start: `Space.started` skips.
    """
    if existing() is not None:
        return "rdma-webhook.example/none:none"
    with _uncaptured(request.config):
        mpi = mpi_image()
    cluster.load(mpi.archive)
    return mpi.name


@contextmanager
def _uncaptured(config: pytest.Config) -> Iterator[None]:
    """Show output despite pytest's capturing."""
    capturing = config.pluginmanager.get_plugin("capturemanager")
    with capturing.global_and_fixture_disabled() if capturing else nullcontext():
        yield
