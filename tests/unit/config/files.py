"""Fabrics files for tests, as small as possible."""

from __future__ import annotations

import json
from typing import Any

from webhook.config.findings import InvalidConfiguration, located_text
from webhook.config.load import parse_fabrics
from webhook.model.fabric import Fabric
from webhook.model.finding import Location


def fabric(name: str = "ib", **fields: Any) -> dict[str, Any]:
    """Make a fabric whose only findings are about `fields`."""
    plain = {"name": name, "resources": [{"name": "rdma/ib"}], "hcas": ["mlx5_0"]}
    return {key: value for key, value in {**plain, **fields}.items() if value != ...}


def roce(**fields: Any) -> dict[str, Any]:
    """Make an Ethernet fabric that has no findings."""
    return fabric(**{"linkLayer": "Ethernet", "networks": ["lab/roce"], **fields})


def sriov(**fields: Any) -> dict[str, Any]:
    """Make an SR-IOV fabric that has no findings."""
    resources = [{"name": "example.com/vf", "network": "lab/vf"}]
    return fabric(**{"mode": "sr-iov", "hcas": [], "resources": resources, **fields})


def dra(name: str = "ib", **fields: Any) -> dict[str, Any]:
    """Make a fabric of mode dra that has no findings."""
    claims = [{"template": "nics"}]
    return fabric(name, **{"mode": "dra", "hcas": [], "resources": [], "claims": claims, **fields})


def efa(**fields: Any) -> dict[str, Any]:
    """Make a fabric of AWS EFA that has no findings."""
    resources = [{"name": "vpc.amazonaws.com/efa", "count": "per-gpu", "devicesPerGpu": 4}]
    plain = {"mode": "host-device", "transport": "libfabric", "hcas": [], "resources": resources}
    return fabric(**{**plain, **fields})


def text(*fabrics: Any, **top: Any) -> str:
    """Write a fabrics file as JSON, which is YAML too; `top`: fields next to its fabrics."""
    head = {"apiVersion": "rdma.lab/v1alpha1", "kind": "FabricConfiguration"}
    return json.dumps({**head, "spec": {"fabrics": list(fabrics), **top}})


def findings(written: str) -> list[tuple[str, str, str]]:
    """Load a file and list its findings: severity, path, message."""
    try:
        listed = parse_fabrics(written, "fabrics.yaml").findings
    except InvalidConfiguration as error:
        listed = error.findings
    return [
        (item.level, item.location.path, located_text(item._replace(location=Location())))
        for item in listed
    ]


def compiled(**fields: Any) -> Fabric:
    """Compile one fabric that has no errors."""
    return parse_fabrics(text(fabric(**fields)), "fabrics.yaml").compiled.fabrics["ib"]
