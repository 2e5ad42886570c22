"""Helm 3 and Helm 4, and kubectl's kustomize, with which the two kinds of manifests are rendered.

They come from the cache, as promtool does.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.cluster.binaries import cache_folder
from tests.cluster.versions import DEFAULT_MINOR, provider
from tests.integration.programs import lacking
from webhook import __version__

MANIFESTS = Path(__file__).parents[2] / "manifests"
CHART = MANIFESTS / "chart"
#: The supported versions, as programs of tests/cluster/versions.py.
VERSIONS = ("helm-3", "helm-4")
#: The name and the namespace of the release.
RELEASE = "rdma-webhook"
#: Both versions evaluate templates alike, so one is enough for most values.
LATEST = VERSIONS[-1]
#: The key of the Deployment.
DEPLOYMENT = ("Deployment", RELEASE, RELEASE)
#: The labels that the chart adds to each object and to the pods, if the manifests have no such.
ADDED = {
    "app.kubernetes.io/name": RELEASE,
    "app.kubernetes.io/instance": RELEASE,
    "app.kubernetes.io/version": __version__,
    "app.kubernetes.io/part-of": RELEASE,
    "app.kubernetes.io/managed-by": "Helm",
    "helm.sh/chart": f"{RELEASE}-{__version__}",
}
each_version = pytest.mark.parametrize("version", VERSIONS)

Document = dict[str, Any]
#: The objects of a rendering by kind, namespace and name.
Objects = dict[tuple[str, str, str], Document]


def helm(version: str, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
    """Run Helm of this version; if it was not built, fail with CI=true, else skip the test."""
    return _run(version, *arguments)


@cache  # many tests compare with the default values
def rendered(version: str, *options: str, namespace: str = RELEASE) -> Objects:
    """Render the chart with these options."""
    command = ("template", RELEASE, CHART, f"--namespace={namespace}", "--skip-tests")
    ran = helm(version, *command, *options)
    assert ran.returncode == 0, ran.stderr
    return by_name(documents(ran.stdout))


def refusal(version: str, *options: str) -> str:
    """Return what Helm prints about wrong values."""
    ran = helm(version, "template", RELEASE, CHART, *options)
    assert ran.returncode != 0
    return ran.stderr


@cache
def kustomized(folder: Path) -> Objects:
    """Build a folder with kustomize."""
    ran = _run("kubectl", "kustomize", folder)
    assert ran.returncode == 0, ran.stderr
    return by_name(documents(ran.stdout))


def documents(text: str) -> Iterator[Document | None]:
    """Parse YAML in C: the definition alone would take a second otherwise."""
    yield from yaml.load_all(text, Loader=yaml.CSafeLoader)


def by_name(parsed: Iterator[Document | None]) -> Objects:
    """Return the objects by kind, namespace and name; fail if two have the same."""
    objects: Objects = {}
    for document in parsed:
        if document:
            metadata = document["metadata"]
            key = (document["kind"], metadata.get("namespace", ""), metadata["name"])
            assert key not in objects, key
            objects[key] = document
    return objects


def labels_of(document: Document) -> Mapping[str, str]:
    """Return the labels of an object; empty without any."""
    return document["metadata"].get("labels") or {}


def _run(program: str, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
    path = cache_folder(provider(program, DEFAULT_MINOR)) / program
    if not path.exists():
        lacking(f"no {program} here: make helm")
    return subprocess.run([path, *arguments], capture_output=True, text=True, check=False)
