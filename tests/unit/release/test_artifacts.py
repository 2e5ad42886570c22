from __future__ import annotations

import os
import tarfile
from pathlib import Path

from release import artifacts
from release.artifacts import Source


def source(root: Path) -> Source:
    """Return an export with a chart."""
    templates = root / "manifests" / "chart" / "templates"
    templates.mkdir(parents=True)
    (templates / "service.yaml").write_text("kind: Service\n")
    (templates.parent / "Chart.yaml").write_text("name: rdma-webhook\n")
    return Source(root=root, version="1.2.0", commit="0" * 40, time=1_700_000_000)


def test_a_chart_is_always_packed_into_the_same_bytes(tmp_path: Path) -> None:
    """Else nobody could check a release by building it again."""
    chart = source(tmp_path)
    first = artifacts.chart(chart, tmp_path).read_bytes()
    for file in tmp_path.rglob("*.yaml"):
        os.utime(file, (1, 1))
        file.chmod(0o600)
    assert artifacts.chart(chart, tmp_path).read_bytes() == first


def test_a_chart_has_its_files_under_its_name(tmp_path: Path) -> None:
    """As Helm expects them, and with the time of the commit."""
    path = artifacts.chart(source(tmp_path), tmp_path)
    assert path.name == "rdma-webhook-1.2.0.tgz"
    with tarfile.open(path) as archive:
        members = {member.name: member.mtime for member in archive}
    time = 1_700_000_000
    assert members == {
        "rdma-webhook/Chart.yaml": time,
        "rdma-webhook/templates/service.yaml": time,
    }
