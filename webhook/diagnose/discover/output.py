"""What was discovered, for programs: stable, and described by `discover.schema.json`.

Keys may be added, but are never renamed. What no tool said is null.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from webhook.diagnose.discover.discovery import Discovery
from webhook.diagnose.discover.site import FoundNode, FoundPort, SiteFinding

_SCHEMA = Path(__file__).with_name("discover.schema.json")


def discover_form(found: Discovery) -> dict[str, Any]:
    """Return what was discovered as plain JSON values."""
    return {
        "nodes": [_node_form(node) for node in found.nodes],
        "fabrics": list(found.entries),
        "findings": [_finding_form(one) for one in found.findings],
    }


def discover_schema() -> str:
    """Return the JSON Schema (draft 2020-12) of the form."""
    return _SCHEMA.read_text(encoding="utf-8")


def _node_form(node: FoundNode) -> dict[str, Any]:
    return {
        "name": node.name,
        "machine": node.machine,
        "gpus": [{"product": gpu.product, "count": gpu.number} for gpu in node.gpus],
        "ports": [_port_form(port) for port in node.ports],
        "findings": [_finding_form(one) for one in node.findings],
    }


def _port_form(port: FoundPort) -> dict[str, Any]:
    return {
        "device": port.device,
        "port": port.port,
        "netdev": port.netdevs[0] if port.netdevs else None,
        "state": port.state,
        "linkLayer": port.link_layer,
        "rateGbps": port.rate_gbps,
        "pci": port.pci,
        "model": port.model,
        "firmware": port.firmware,
        "numa": port.numa,
        "virtual": port.virtual,
        "sources": list(port.sources),
    }


def _finding_form(finding: SiteFinding) -> dict[str, Any]:
    return {
        "severity": finding.severity,
        "nodes": list(finding.nodes),
        "message": finding.message,
        "remedy": finding.remedy,
    }
