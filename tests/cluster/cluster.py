"""A Kubernetes cluster with one real node, in its own namespaces on this machine.

with running("1.36") as cluster:
    cluster.kubectl("apply", "-f", "-", input=manifest)
"""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from itertools import count as numbers
from itertools import islice
from pathlib import Path
from typing import Any

from tests.cluster import bringup, kwok, lifetime, state
from tests.cluster.access import Access, by_certificate
from tests.cluster.binaries import BuildError, binary
from tests.cluster.buildah import ImageError
from tests.cluster.controlplane import server
from tests.cluster.images import pause_image
from tests.cluster.lifetime import Guard
from tests.cluster.namespaces import NamespaceError, Namespaces, environ
from tests.cluster.network import Network
from tests.cluster.node import NAME, load
from tests.cluster.processes import ClusterError, Process, Processes
from tests.cluster.state import ProcessId, State
from tests.cluster.versions import DEFAULT_MINOR

#: The exceptions of `up` and `running`; the messages are for the user who starts a cluster.
ERRORS = (BuildError, ClusterError, FileExistsError, ImageError, NamespaceError)


@dataclass(frozen=True)
class Owned:
    """The resources of the process that has started a cluster."""

    outer: subprocess.Popen[str]
    guard: Guard | None

    def release(self) -> None:
        """Wait for the processes, once the cluster is gone."""
        self.outer.wait()
        if self.guard is not None:
            self.guard.dismiss()


class KubectlError(ClusterError):
    """kubectl failed; the message is its standard error."""


class Cluster:
    """A running cluster."""

    def __init__(
        self,
        directory: Path,
        minor: str,
        namespaces: Namespaces,
        network: Network,
        owned: Owned | None = None,
    ) -> None:
        self.directory = directory
        self.minor = minor
        self.namespaces = namespaces
        self.network = network
        self.processes = Processes(namespaces, self.logs)
        self._owned = owned
        self._loaded: set[Path] = set()

    @property
    def kubeconfig(self) -> Path:
        """The administrator's kubeconfig, for programs on the machine and inside."""
        return self.directory / "kubeconfig"

    @cached_property
    def _certified(self) -> Access:
        return by_certificate(server(self.network), self.directory / "pki")

    @property
    def access(self) -> Access:
        """Access to the API server without kubectl, as the administrator."""
        return self._certified

    @property
    def logs(self) -> Path:
        """The folder of its programs' logs."""
        return self.directory / "log"

    @property
    def _as_admin(self) -> tuple[str, str]:
        cache = self.directory / "kubectl-cache"
        return f"--kubeconfig={self.kubeconfig}", f"--cache-dir={cache}"

    def kubectl(self, *arguments: str, input: str | None = None, check: bool = True) -> str:  # noqa: A002
        """Run kubectl and return its output; with `check`, KubectlError if it fails.

        Without `check`, the output is followed by the standard error.
        """
        argv = [str(binary("kubectl", self.minor)), *self._as_admin, *arguments]
        ran = subprocess.run(
            argv, input=input, capture_output=True, text=True, env=environ(), check=False
        )
        if check and ran.returncode:
            raise KubectlError(f"kubectl {' '.join(arguments)}: {ran.stderr.strip()}")
        printed: str = ran.stdout
        return printed if check else printed + ran.stderr

    def skip_if_existing(self, ability: str) -> None:
        """Skip the test if this is an existing cluster, which cannot provide this."""

    def exec(self, *argv: str | os.PathLike[str], input: str | None = None) -> str:  # noqa: A002
        """Run a command on the node, inside the cluster's namespaces, and return its output."""
        return self.namespaces.run(argv, stdin=input)

    def load(self, archive: Path) -> None:
        """Load the images of an archive onto the node, unless it has them."""
        if archive not in self._loaded:
            load(self.namespaces, archive)
            self._loaded.add(archive)

    def advertise(self, amounts: Mapping[str, str], node: str = NAME) -> None:
        """Make a node report these amounts of resources, such as `nvidia.com/v100`."""
        status = {"status": {"capacity": amounts, "allocatable": amounts}}
        patch = ("--subresource=status", "--type=merge", f"--patch={json.dumps(status)}")
        self.kubectl("patch", "node", node, *patch)

    def fake_nodes(
        self,
        count: int,
        labels: Mapping[str, str] | None = None,
        capacity: Mapping[str, str] | None = None,
    ) -> list[str]:
        """Add fake nodes, which are ready and tainted; return their names."""
        if not (self.logs / "kwok.log").exists():
            kwok.start_kwok(self.processes)
        existing = self.kubectl("get", "nodes", "--selector", kwok.FAKE, "--output=name").split()
        free = (name for name in map("fake-{}".format, numbers()) if f"node/{name}" not in existing)
        names = [*islice(free, count)]
        self.kubectl(
            "create",
            "--filename=-",
            input=json.dumps(kwok.nodes(names, labels or {}, capacity or {})),
        )
        self.processes.until("fake nodes ready", lambda: set(names) <= self._ready())
        return names

    def _ready(self) -> set[str]:
        """Return the fake nodes that take pods; `kubectl wait` would ask for each separately."""
        text = self.kubectl("get", "nodes", "--selector", kwok.FAKE, "--output=json")
        return {node["metadata"]["name"] for node in json.loads(text)["items"] if _takes_pods(node)}

    def start(
        self,
        name: str,
        argv: Sequence[str | os.PathLike[str]],
        env: Mapping[str, str] | None = None,
    ) -> Process:
        """Start a program inside, next to the cluster's own; its log is `logs/NAME.log`.

        It may use `kubeconfig`, and sees the machine's files except /run.
        """
        # Not one of the cluster's own programs, since this one may end.
        return Processes(self.namespaces, self.logs).start(name, argv, env)

    def down(self) -> None:
        """End the cluster and remove its directory."""
        self.namespaces.end()
        lifetime.remove(self.directory)
        if self._owned is not None:
            self._owned.release()


def _takes_pods(node: dict[str, Any]) -> bool:
    """Return whether a node is ready, and its controller has removed the taint of new nodes."""
    conditions = node["status"].get("conditions") or ()
    return ("Ready", "True") in {
        (condition["type"], condition["status"]) for condition in conditions
    } and not any("not-ready" in taint["key"] for taint in node["spec"].get("taints", ()))


def attach(directory: Path) -> Cluster | None:
    """Return the running cluster of this directory, which another process started, or None."""
    record = state.read(directory)
    if record is None or not record.complete or not record.alive():
        return None
    assert record.init is not None
    assert record.network is not None
    return Cluster(directory, record.minor, Namespaces(record.init), Network(record.network))


def up(minor: str, directory: Path, *, bound: bool = False) -> Cluster:
    """Start a cluster, which runs until it is taken down.

    A `bound` one also ends with the calling thread. Raises ERRORS; FileExistsError means that the
    directory is in use.
    """
    lifetime.sweep()
    directory = _claimed(directory, minor)
    guard: Guard | None = None
    try:
        bringup.build(minor)
        pause = pause_image()
        guard = Guard(directory) if bound else None
        site = bringup.enter(directory, minor, bound=bound)
        cluster = Cluster(directory, minor, site.namespaces, site.network, Owned(site.outer, guard))
        bringup.start(site, cluster.processes, pause)
    except BaseException:
        lifetime.remove(directory)
        if guard is not None:
            guard.dismiss()
        raise
    return cluster


@contextmanager
def running(minor: str = DEFAULT_MINOR, directory: Path | None = None) -> Iterator[Cluster]:
    """Yield a cluster that ends with the block, or with this process, however that ends.

    Unless given, its directory is a new one. See `up`.
    """
    if directory is None:
        state.home().mkdir(parents=True, exist_ok=True)
        directory = Path(tempfile.mkdtemp(prefix="test-", dir=state.home()))
    cluster = up(minor, directory, bound=True)
    try:
        yield cluster
    finally:
        cluster.down()


def _claimed(directory: Path, minor: str) -> Path:
    """Return the absolute directory: created, private, and empty except for the record."""
    directory = directory.absolute()
    record = state.read(directory)
    if record is not None and record.alive():
        raise FileExistsError(f"{directory}: a cluster of Kubernetes {record.minor} runs there")
    lifetime.remove(directory)
    directory.mkdir(parents=True, exist_ok=True)
    directory.chmod(0o700)
    if any(directory.iterdir()):
        raise FileExistsError(f"{directory} is not empty")
    State(minor, ProcessId.of(os.getpid())).write(directory)
    return directory
