"""The bills of materials (CycloneDX) of a release, without what differs from build to build."""

from __future__ import annotations

import json
import subprocess
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from release.artifacts import Source
from tests.cluster.binaries import binary


def of_dependencies(source: Source, cyclonedx: Path, folder: Path) -> Path:
    """List the Python packages of requirements.lock; `cyclonedx` is the command `cyclonedx-py`."""
    path = folder / f"rdma-webhook-{source.version}-python.cdx.json"
    options = ("--output-reproducible", "--output-format", "JSON", "--pyproject", "pyproject.toml")
    command = [str(cyclonedx.absolute()), "requirements", *options, "requirements.lock"]
    ran = subprocess.run(command, cwd=source.root, check=True, capture_output=True)
    return _write(path, source, json.loads(ran.stdout))


def of_image(source: Source, archive: Path) -> Path:
    """List what is in an image, from its archive."""
    path = archive.with_name(archive.name.removesuffix(".oci.tar") + "-image.cdx.json")
    options = ("--quiet", "--source-name=rdma-webhook", "--output=cyclonedx-json")
    command = [str(binary("syft")), "scan", f"oci-archive:{archive}", *options]
    ran = subprocess.run(command, check=True, capture_output=True)
    return _write(path, source, json.loads(ran.stdout))


def _write(path: Path, source: Source, bom: dict[str, Any]) -> Path:
    """Write a bill with the time of the commit, and no serial number."""
    bom.pop("serialNumber", None)
    bom["metadata"]["timestamp"] = datetime.fromtimestamp(source.time, UTC).isoformat()
    bom["metadata"]["component"]["version"] = source.version
    path.write_text(json.dumps(bom, indent=2, sort_keys=True) + "\n")
    return path
