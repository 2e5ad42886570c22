"""The manifests as sites render them in another namespace."""

from __future__ import annotations

import shutil
from pathlib import Path

import yaml

MANIFESTS = Path(__file__).parents[2] / "manifests"


def elsewhere(folder: str, scratch: Path) -> Path:
    """Write a site's own kustomization, as docs/installation.md shows it, and return its folder."""
    # Paths of kustomize are relative, and it follows links.
    up = "/".join([".."] * (len(scratch.resolve().parts) - 1))
    site = {
        "namespace": "elsewhere",
        "resources": [f"{up}{MANIFESTS}/{folder}", f"{up}{MANIFESTS}/monitoring"],
        "transformers": [f"{up}{MANIFESTS}/namespace"],
    }
    (scratch / "kustomization.yaml").write_text(yaml.safe_dump(site), encoding="utf-8")
    return scratch


def with_namespace(folder: str, scratch: Path) -> Path:
    """Set another namespace as Argo CD and Flux do, without `transformers:`; return the folder.

    They edit `namespace:` in a checkout: kustomize.namespace (`kustomize edit set namespace`), and
    targetNamespace (kustomize-controller's generator).
    """
    copy = scratch / "manifests"
    shutil.copytree(MANIFESTS, copy)
    file = copy / folder / "kustomization.yaml"
    kustomization = yaml.safe_load(file.read_text(encoding="utf-8"))
    file.write_text(yaml.safe_dump({**kustomization, "namespace": "elsewhere"}), encoding="utf-8")
    return file.parent


def wrapped(folder: str, scratch: Path) -> Path:
    """Write a site's own kustomization that sets nothing but the namespace; return its folder."""
    path = elsewhere(folder, scratch)
    file = path / "kustomization.yaml"
    site = yaml.safe_load(file.read_text(encoding="utf-8"))
    del site["transformers"]
    file.write_text(yaml.safe_dump(site), encoding="utf-8")
    return path
