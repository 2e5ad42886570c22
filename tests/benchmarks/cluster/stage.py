"""The stage: a cluster, the servers next to its API server, and all modes, active."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.benchmarks.cluster import counts
from tests.benchmarks.cluster.gatekeeper import start_gatekeeper, without_memory_limit
from tests.benchmarks.cluster.load import Load
from tests.benchmarks.cluster.modes import (
    GATEKEEPER,
    MODES,
    NONE,
    NOOP,
    OURS,
    Document,
    Mode,
    namespaces,
    webhooks,
)
from tests.benchmarks.cluster.policy import policy
from tests.benchmarks.cluster.servers import our_patch, start_others, start_ours, until
from tests.benchmarks.decide import FABRICS
from tests.benchmarks.workloads import SIBLINGS, sibling
from tests.cluster import progress
from tests.cluster.binaries import binary
from tests.cluster.cluster import Cluster, running
from tests.cluster.node import NAME
from tests.cluster.pki import Authority
from tests.e2e.documents import wait_for_accounts
from webhook.model.annotations import ENABLE_ANNOTATION, STATUS_ANNOTATION

#: The API server gives the volume of the service account's token a random name.
_TOKEN = re.compile(r"kube-api-access-\w{5}")


@dataclass(frozen=True)
class Stage:
    """A cluster where all modes are active."""

    cluster: Cluster
    load: Load
    #: Files with the pods of a workload that opts in, of one without the annotation, and of one
    #: that declines.
    asking: list[Path]
    silent: list[Path]
    declining: list[Path]
    #: The number of operations in our patch.
    operations: int


@contextmanager
def staged() -> Iterator[Stage]:
    """Yield the stage, which ends with the block."""
    for program in ("vegeta", "gatekeeper"):
        binary(program)  # built before anything runs
    with running() as cluster:
        files = cluster.directory / "bench"
        files.mkdir()
        with progress.step("starting the webhooks"):
            stage = _staged(cluster, files)
        yield stage


def _staged(cluster: Cluster, files: Path) -> Stage:
    asking = _written(files, "asking", {ENABLE_ANNOTATION: "true"})
    _prepare(cluster, files)
    authority = Authority()
    (files / "ca.crt").write_bytes(authority.certificate)
    authority.server("webhook", [cluster.network.gateway]).write(files, "tls")
    start_ours(cluster, files)
    patch = our_patch(cluster, files, _created(cluster, NONE, asking[0]))
    (files / "patch.json").write_text(json.dumps(patch, separators=(",", ":")))
    start_others(cluster, files)
    start_gatekeeper(cluster, files, patch)
    _apply(cluster, webhooks(cluster.network.gateway, authority.certificate))
    _apply(cluster, policy(patch))
    _check(cluster, asking)
    results = files / "results"
    results.mkdir()
    return Stage(
        cluster,
        Load(cluster, results),
        asking,
        _written(files, "silent", {}),
        _written(files, "declining", {ENABLE_ANNOTATION: "false"}),
        len(patch),
    )


def _written(files: Path, name: str, opt_in: dict[str, str]) -> list[Path]:
    """Write the pods of one workload, in one file each."""
    folder = files / name
    folder.mkdir()
    paths = [folder / f"{number}.json" for number in range(SIBLINGS)]
    for number, path in enumerate(paths):
        path.write_text(json.dumps(_stripped(sibling(number), opt_in), separators=(",", ":")))
    return paths


def _stripped(manifest: Document, opt_in: dict[str, str]) -> Document:
    """Return the pod as a controller would create it, without the API server's additions."""
    metadata, spec = manifest["metadata"], manifest["spec"]
    for added in ("managedFields", "namespace"):
        del metadata[added]
    del metadata["annotations"][ENABLE_ANNOTATION]
    metadata["annotations"] |= opt_in
    for holder, field in (
        (spec, "volumes"),
        *((container, "volumeMounts") for container in spec["containers"]),
    ):
        holder[field] = [mount for mount in holder[field] if not _TOKEN.fullmatch(mount["name"])]
    return manifest


def _prepare(cluster: Cluster, files: Path) -> None:
    """Make the namespaces, a node with the resources that the pod requests, and the facts."""
    _apply(cluster, namespaces())
    cluster.advertise({"nvidia.com/gpu": "8", "rdma/hca": "64"})
    cluster.kubectl("label", "node", NAME, "nvidia.com/gpu.product=NVIDIA-H100-80GB-HBM3")
    wait_for_accounts(cluster, *(mode.namespace for mode in MODES))
    kinds = "namespaces,limitranges,resourcequotas,nodes"
    facts = cluster.kubectl("get", kinds, "--all-namespaces", "--output=json")
    (files / "facts.json").write_text(facts)
    (files / "fabrics.yaml").write_text(FABRICS)


def _check(cluster: Cluster, asking: list[Path]) -> None:
    """Wait until each mode is active, and check its effect on the workload's first and last pod."""
    for mode in MODES:
        until(lambda mode=mode: _acts(cluster, mode, asking[0]))  # type: ignore[misc]
    for path in (asking[0], asking[-1]):
        pods = {mode: _created(cluster, mode, path) for mode in MODES}
        pods[GATEKEEPER] = without_memory_limit(pods[GATEKEEPER])
        _compare({mode: _shape(created) for mode, created in pods.items()})


def _compare(shapes: dict[Mode, tuple[str, Any]]) -> None:
    """Check that the modes change a pod as our webhook does, or not at all."""
    for mode, shape in shapes.items():
        if mode.same_patch:
            assert shape == shapes[OURS], mode
    assert shapes[NOOP] == shapes[NONE] != shapes[OURS]


def _acts(cluster: Cluster, mode: Mode, asking: Path) -> bool:
    """Return whether the API server applies the mode yet."""
    created = _created(cluster, mode, asking)
    if mode.same_patch:
        return STATUS_ANNOTATION in created["metadata"]["annotations"]
    return mode is NONE or mode.webhook in counts.calls(cluster)


def _shape(created: Document) -> tuple[str, Any]:
    """Return what must not differ between namespaces."""
    return _TOKEN.sub("token", json.dumps(created["spec"])), created["metadata"]["annotations"]


def _created(cluster: Cluster, mode: Mode, asking: Path) -> Document:
    arguments = ("--namespace", mode.namespace, "--filename", str(asking))
    printed = cluster.kubectl("create", "--dry-run=server", "--output=json", *arguments)
    parsed: Document = json.loads(printed)
    return parsed


def _apply(cluster: Cluster, documents: list[Document]) -> None:
    manifest = {"apiVersion": "v1", "kind": "List", "items": documents}
    cluster.kubectl("apply", "--filename=-", input=json.dumps(manifest))
