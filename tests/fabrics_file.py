"""The text of a fabrics file around its configuration."""

from __future__ import annotations

from textwrap import indent

HEAD = "apiVersion: rdma.lab/v1alpha1\nkind: FabricConfiguration\n"


def below_spec(body: str) -> str:
    """Write a fabrics file from the YAML of its spec, whose first line becomes line 4."""
    return f"{HEAD}spec:\n{indent(body, '  ')}"


def single_fabric(name: str, gpu: str, resource: str) -> str:
    """Write a file with one fabric; more lines of the fabric may follow."""
    return below_spec(
        f"fabrics:\n- name: {name}\n  match: {{gpuResources: [{gpu}]}}\n"
        f"  resources: [{{name: {resource}}}]\n  hcas: [mlx5_0]\n"
    )
