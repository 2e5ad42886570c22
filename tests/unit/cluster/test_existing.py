"""Tests of an existing cluster: kubectl is its only access; tests that need more are skipped."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.cluster.cluster import Cluster, KubectlError
from tests.cluster.existing import ExistingCluster, existing
from tests.cluster.install import _named
from tests.cluster.processes import ClusterError

SERVER = {"name": "lab", "cluster": {"server": "https://lab.example:6443"}}
USER: dict[str, Any] = {"name": "me", "user": {"token": "abc"}}
VERSION = {"serverVersion": {"major": "1", "minor": "36+"}}

Kubectl = Callable[..., None]
#: The abilities that only a cluster built by the tests has.
POWERS: dict[str, Callable[[Cluster], object]] = {
    "directory": lambda cluster: cluster.directory,
    "logs": lambda cluster: cluster.logs,
    "network": lambda cluster: cluster.network.gateway,
    "processes": lambda cluster: cluster.processes.without("kubelet"),
    "exec": lambda cluster: cluster.exec("ip", "link"),
    "start": lambda cluster: cluster.start("name", ["true"]),
    "load": lambda cluster: cluster.load(Path("image.tar")),
    "fake_nodes": lambda cluster: cluster.fake_nodes(1),
    "advertise": lambda cluster: cluster.advertise({"nvidia.com/v100": "1"}),
    "need": lambda cluster: cluster.skip_if_existing("a second node"),
    "down": lambda cluster: cluster.down(),
}


@pytest.fixture
def kubectl(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Kubectl:
    """Put a kubectl on the PATH that knows a kubeconfig and a version, and fails otherwise."""

    def has(user: dict[str, Any] = USER, **config: Any) -> None:
        view = {"clusters": [SERVER], "users": [user], **config}
        (tmp_path / "config.json").write_text(json.dumps(view))
        (tmp_path / "version.json").write_text(json.dumps(VERSION))
        program = tmp_path / "kubectl"
        program.write_text(
            '#!/bin/sh\ncase "$2" in\n'
            f"config|version) cat {tmp_path}/$2.json ;;\n"
            '*) echo "printed $*"; echo "said no" >&2; exit 1 ;;\nesac\n'
        )
        program.chmod(0o755)

    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    return has


@pytest.fixture
def cluster(kubectl: Kubectl) -> Cluster:
    """Return the cluster of that kubectl."""
    kubectl()
    return ExistingCluster(Path("/lab/config"), "lab/webhook:1")


def test_the_environment_names_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """An empty variable counts as unset."""
    monkeypatch.setenv("E2E_KUBECONFIG", "/lab/config")
    assert existing() == Path("/lab/config")
    monkeypatch.setenv("E2E_KUBECONFIG", "")
    assert existing() is None


def test_how_it_is_reached(cluster: Cluster) -> None:
    """URL and token are the kubeconfig's, and the version is the server's."""
    assert cluster.access.url == "https://lab.example:6443"
    assert cluster.access.headers == {"Authorization": "Bearer abc"}
    assert cluster.kubeconfig == Path("/lab/config")
    assert cluster.minor == "1.36"


def test_kubectl_of_the_path_is_asked(cluster: Cluster) -> None:
    """It gets the kubeconfig; a failure quotes its message."""
    with pytest.raises(KubectlError, match="kubectl get pods: said no"):
        cluster.kubectl("get", "pods")
    output = "printed --kubeconfig=/lab/config get pods\nsaid no\n"
    assert cluster.kubectl("get", "pods", check=False) == output


@pytest.mark.parametrize("use", POWERS.values(), ids=POWERS)
def test_tests_that_need_power_are_skipped(
    cluster: Cluster, use: Callable[[Cluster], object]
) -> None:
    """The machine, the nodes and the programs of such a cluster cannot be controlled."""
    with pytest.raises(
        pytest.skip.Exception, match="not on the cluster of E2E_KUBECONFIG: it needs "
    ):
        use(cluster)


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"user": {"name": "me", "user": {"exec": {"command": "login"}}}}, "nor a token"),
        ({"users": []}, "names no user"),
        ({"clusters": None}, "names no cluster"),
    ],
    ids=["plugin", "no user", "no context"],
)
def test_a_kubeconfig_that_will_not_do(kubectl: Kubectl, config: Any, message: str) -> None:
    """Requests without kubectl need a certificate or a token; the message names what is missing."""
    kubectl(**config)
    with pytest.raises(ClusterError, match=message):
        ExistingCluster(Path("/lab/config"), "lab/webhook:1")


def test_no_kubectl(kubectl: Kubectl, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without kubectl the cluster cannot be used."""
    kubectl()
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(ClusterError, match="not on the PATH"):
        ExistingCluster(Path("/lab/config"), "lab/webhook:1")


@pytest.mark.parametrize(
    ("image", "named"),
    [
        ("webhook:1", {"newName": "webhook", "newTag": "1"}),
        ("webhook", {"newName": "webhook", "newTag": "latest"}),
        ("lab:5000/webhook:1", {"newName": "lab:5000/webhook", "newTag": "1"}),
        ("lab:5000/webhook", {"newName": "lab:5000/webhook", "newTag": "latest"}),
        ("lab/webhook@sha256:0a", {"newName": "lab/webhook", "digest": "sha256:0a"}),
    ],
)
def test_an_image_is_named_as_kustomize_does(image: str, named: dict[str, str]) -> None:
    """A registry may have a port, and an image may have a digest instead of a tag."""
    assert _named(image) == named
