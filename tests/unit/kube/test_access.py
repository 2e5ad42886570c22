"""The choice of credentials, before any are read."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from webhook.kube import access
from webhook.kube.access import (
    IN_CLUSTER,
    NAMESPACE_VARIABLE,
    Overrides,
    kubeconfig_or_pod,
    own_namespace,
)

POD = {IN_CLUSTER: "10.0.0.1"}


@pytest.fixture
def account(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the folder of a service account without a token, and set a home without files."""
    folder = tmp_path / "account"
    folder.mkdir()
    monkeypatch.setattr(access, "SERVICE_ACCOUNT", folder)
    monkeypatch.setenv("HOME", str(tmp_path))
    return folder


def test_outside_of_a_pod(account: Path) -> None:
    """The given kubeconfig, else $KUBECONFIG, else the default file, whether it exists or not."""
    usual = account.parent / ".kube" / "config"
    assert kubeconfig_or_pod(None, {}) == usual
    assert kubeconfig_or_pod(None, {"KUBECONFIG": ""}) == usual
    assert kubeconfig_or_pod(None, {"KUBECONFIG": "a:b"}) == Path("a:b")
    assert kubeconfig_or_pod(Path("c"), {"KUBECONFIG": "a:b"}) == Path("c")


def test_in_a_pod(account: Path) -> None:
    """The service account is used if it has a token, and no kubeconfig is given or exists."""
    usual = account.parent / ".kube" / "config"
    assert kubeconfig_or_pod(None, POD) == usual
    (account / "token").write_text("hunter2")
    assert kubeconfig_or_pod(None, {}) == usual
    assert kubeconfig_or_pod(None, POD) is None
    assert kubeconfig_or_pod(None, {**POD, "KUBECONFIG": "a"}) is None
    assert kubeconfig_or_pod(Path("c"), POD) == Path("c")


def test_a_kubeconfig_wins_in_a_pod(account: Path) -> None:
    """A single file of $KUBECONFIG is enough, and so is the default file."""
    (account / "token").write_text("hunter2")
    mine = account / "config"
    mine.touch()
    listed = os.pathsep.join(("missing", str(mine)))
    assert kubeconfig_or_pod(None, {**POD, "KUBECONFIG": listed}) == Path(listed)
    usual = account.parent / ".kube" / "config"
    usual.parent.mkdir()
    usual.touch()
    assert kubeconfig_or_pod(None, POD) == usual


def test_the_namespace_of_the_pod(account: Path) -> None:
    """The variable of the manifests, else the file from the kubelet; it may be unknown."""
    assert own_namespace({}) == ""
    (account / "namespace").write_text("lab\n")
    assert own_namespace({}) == "lab"
    assert own_namespace({NAMESPACE_VARIABLE: "other"}) == "other"


def test_what_only_a_kubeconfig_has() -> None:
    """A context, a cluster or a user is part of a kubeconfig; nothing else is."""
    assert Overrides(server="x", token="y").part_of_kubeconfig == ""
    assert Overrides(context="x").part_of_kubeconfig == "context x"
    assert Overrides(cluster="x", user="y").part_of_kubeconfig == "cluster x"
    assert Overrides(user="y").part_of_kubeconfig == "user y"
