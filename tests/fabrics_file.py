"""Fabrics files: the text around a configuration, and what a file has."""

from __future__ import annotations

from pathlib import Path
from textwrap import indent

from webhook.config.load import LoadedConfiguration, parse_fabrics

HEAD = "apiVersion: rdma.lab/v1alpha1\nkind: FabricConfiguration\n"


def below_spec(body: str) -> str:
    """Write a fabrics file from the YAML of its spec, whose first line becomes line 4."""
    return f"{HEAD}spec:\n{indent(body, '  ')}"


def load_fabrics(path: Path) -> LoadedConfiguration:
    """Load a fabrics file."""
    return parse_fabrics(path.read_text(encoding="utf-8"), str(path))


def single_fabric(name: str, gpu: str, resource: str) -> str:
    """Write a file with one fabric; more lines of the fabric may follow."""
    return below_spec(
        f"fabrics:\n- name: {name}\n  match: {{gpuResources: [{gpu}]}}\n"
        f"  resources: [{{name: {resource}}}]\n  hcas: [mlx5_0]\n"
    )
