"""The files of a release that come from this repository: wheel, chart, manifests, alert rules."""

from __future__ import annotations

import gzip
import io
import os
import subprocess
import sys
import tarfile
from dataclasses import dataclass
from pathlib import Path

import yaml

from tests.cluster.binaries import binary


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """The exported files of a commit."""

    root: Path
    version: str
    commit: str
    time: int
    """The time of the commit, in seconds since 1970: that of each file in the artifacts."""

    @property
    def environ(self) -> dict[str, str]:
        """The environment of the programs that build an artifact."""
        return {**os.environ, "SOURCE_DATE_EPOCH": str(self.time)}


def wheel(source: Source, folder: Path) -> Path:
    """Build the wheel; its build backend must be installed."""
    options = ("--no-deps", "--no-build-isolation", "--no-cache-dir", "--no-index", "--quiet")
    pip = [sys.executable, "-m", "pip", "wheel", *options]
    command = [*pip, "--wheel-dir", str(folder), str(source.root)]
    subprocess.run(command, check=True, env=source.environ, umask=0o022)  # a wheel has modes
    (built,) = folder.glob("*.whl")
    return built


def chart(source: Source, folder: Path) -> Path:
    """Pack the chart as `helm package` does, but always into the same bytes."""
    path = folder / f"rdma-webhook-{source.version}.tgz"
    chart_root = source.root / "manifests" / "chart"
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as archive:
        for file in sorted(file for file in chart_root.rglob("*") if file.is_file()):
            name = f"rdma-webhook/{file.relative_to(chart_root)}"
            member = tarfile.TarInfo(name)
            member.size, member.mtime, member.mode = file.stat().st_size, source.time, 0o644
            with file.open("rb") as content:
                archive.addfile(member, content)
    path.write_bytes(gzip.compress(packed.getvalue(), mtime=source.time))
    return path


def manifests(source: Source, image: str, folder: Path) -> None:
    """Render the self-managed installation, with this image, and apart from it the definition.

    Apart, since `kubectl delete -f` of the definition also deletes the site's fabrics.
    """
    _render(source, ["../manifests/crd"], "", folder / "crds.yaml")
    tagged = f"images: [{{name: rdma-webhook, newName: {image}, newTag: {source.version}}}]\n"
    _render(source, ["../manifests/overlays/self-managed"], tagged, folder / "install.yaml")


def alert_rules(source: Source, folder: Path) -> None:
    """Write the alerts as a rule file, for a Prometheus without the operator."""
    rule = yaml.safe_load((source.root / "manifests/monitoring/prometheusrule.yaml").read_text())
    (folder / "alert-rules.yaml").write_text(yaml.safe_dump(rule["spec"], sort_keys=False))


def _render(source: Source, resources: list[str], settings: str, path: Path) -> None:
    overlay = source.root / path.stem
    overlay.mkdir()
    lines = f"resources: [{', '.join(resources)}]\n{settings}"
    (overlay / "kustomization.yaml").write_text(lines)
    command = [str(binary("kubectl")), "kustomize", str(overlay)]
    path.write_bytes(subprocess.run(command, check=True, capture_output=True).stdout)
