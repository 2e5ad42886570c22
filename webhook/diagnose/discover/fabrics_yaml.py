"""Write the planned fabrics as a fabrics file, with a comment on the reason for each field."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence

from webhook.config.custom_resource import CONFIGURATION_NAME
from webhook.config.findings import InvalidConfiguration
from webhook.config.load import parse_fabrics
from webhook.config.model import API_VERSION, KIND
from webhook.diagnose.discover.fabric_entry import FabricEntryForm, MatchEntryForm
from webhook.diagnose.discover.groups import Group
from webhook.diagnose.discover.plan import FabricPlan, RefusedGroup, describe_group
from webhook.diagnose.discover.used_ports import rails_of
from webhook.model.names import counted, natural_key, shortened_list
from webhook.text.escape import visible

#: Words that YAML reads only as text, except for `_NOT_TEXT`.
_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_./-]*")
_NOT_TEXT = frozenset({"null", "true", "false", "yes", "no", "on", "off", "y", "n"})
#: Characters of a line, without the indentation under `spec`.
_MAX_WIDTH = 98


def fabrics_yaml(plans: Sequence[FabricPlan | RefusedGroup], nodes: int) -> str:
    """Return the file; a fabric that check-config would not accept is commented out."""
    suspect: dict[int, str] = {}
    while True:
        text = _file(plans, suspect, nodes)
        finding = _first_finding(text)
        if finding is None:
            return text
        position, message = finding
        planned = [index for index, plan in enumerate(plans) if isinstance(plan, FabricPlan)]
        live = [index for index in planned if index not in suspect]
        suspect[live[position] if position < len(live) else live[-1]] = message


def accepted_entries(
    plans: Sequence[FabricPlan | RefusedGroup], text: str
) -> list[FabricEntryForm]:
    """Return the entries that are not commented out in the file."""
    loaded = set(parse_fabrics(text, "fabrics").compiled.fabrics)
    return [plan.entry for plan in plans if isinstance(plan, FabricPlan) and plan.name in loaded]


def _first_finding(text: str) -> tuple[int, str] | None:
    """Return the index of the fabric and the message of check-config's first finding, or None."""
    try:
        findings = parse_fabrics(text, "fabrics").findings
    except InvalidConfiguration as error:
        findings = error.findings
    for finding in findings:
        match = re.match(r"spec\.fabrics\[(\d{1,6})\]", finding.location.path)
        return (int(match[1]) if match else 0), f"{finding.location.path}: {finding.text}"
    return None


def _file(plans: Sequence[FabricPlan | RefusedGroup], suspect: dict[int, str], nodes: int) -> str:
    lines = list(_defaults(plans))
    live = [
        index
        for index, plan in enumerate(plans)
        if isinstance(plan, FabricPlan) and index not in suspect
    ]
    lines.append("fabrics:" if live else "fabrics: []")
    for index, plan in enumerate(plans):
        if isinstance(plan, RefusedGroup):
            lines += _comment(
                f"{describe_group(plan.group)}: {plan.finding.text}. {plan.finding.remedy}", ""
            )
        elif index in suspect:
            lines += _comment(f"commented out, since check-config reports: {suspect[index]}", "")
            lines += (f"# {line}" for line in _fabric(plan))
        else:
            lines += _fabric(plan)
    below = (f"  {line}" for line in lines)
    return "\n".join([*_head(nodes), *below]) + "\n"


def _head(nodes: int) -> Iterator[str]:
    source = f"the output of tools on {counted(nodes, 'node')}"
    yield f"# Written by rdma-webhook discover from {source}."
    yield "# Each comment gives the source of a value, or the reason for it."
    yield f"apiVersion: {API_VERSION}"
    yield f"kind: {KIND}"
    yield f"metadata: {{name: {CONFIGURATION_NAME}}}"
    yield "spec:"


def _defaults(plans: Sequence[FabricPlan | RefusedGroup]) -> Iterator[str]:
    if plans and all(unlimited_memlock(plan.group) for plan in plans):
        yield "# containerd has LimitMEMLOCK=infinity on all nodes"
        yield "defaults: {memlock: unlimited}"


def unlimited_memlock(group: Group) -> bool:
    """Return whether containers may lock all their memory on all nodes of a group."""
    return all(
        node_ports.node.properties.get("memlock") == "infinity"
        for node_ports in group.ports_of_nodes
    )


def _fabric(plan: FabricPlan) -> Iterator[str]:
    for text in (plan.description, *_about(plan)):
        yield from _comment(text, "")
    yield f"- name: {_scalar(plan.name)}"
    for key, value in plan.entry.items():
        if key == "match":
            yield from _match(plan.entry["match"], plan.reason_by_field)
        elif key == "resources":
            yield from _comment(plan.reason_by_field[key], "  ")
            yield "  resources:"
            yield from (f"  - {_flow(item)}" for item in plan.entry["resources"])
        elif key != "name":
            yield from _line(f"  {key}: {_flow(value)}", plan.reason_by_field.get(key, ""), "  ")


def _about(plan: FabricPlan) -> Iterator[str]:
    for devices, reason in unused_devices(plan):
        yield f"{devices}: {reason}"
    for rail in rails_of(plan):
        yield rail.text
    for needed in plan.requirements:
        yield f"needs {needed}"


def unused_devices(plan: FabricPlan) -> Iterator[tuple[str, str]]:
    """Yield "mlx5_2, mlx5_3 are unused", and the reason, for each reason."""
    by_reason: dict[str, list[str]] = {}
    for device, obstacle in plan.devices.unused.items():
        by_reason.setdefault(obstacle.text, []).append(device)
    for device, reason in _other_devices(plan).items():
        by_reason.setdefault(reason, []).append(device)
    for reason, devices in by_reason.items():
        yield f"{', '.join(devices)} {'is' if len(devices) == 1 else 'are'} unused", reason


def _other_devices(plan: FabricPlan) -> dict[str, str]:
    """Return the devices of other cards with the reasons; "(on NODE)" where nodes differ."""
    by_port: dict[str, dict[str, list[str]]] = {}
    for node_ports in plan.group.ports_of_nodes:
        for port, reason in node_ports.other_ports.items():
            name = port.name
            by_port.setdefault(name, {}).setdefault(reason, []).append(node_ports.node.name)
    return {
        name: next(iter(nodes_by_reason))
        if len(nodes_by_reason) == 1
        else "; ".join(
            f"{reason} (on {shortened_list(nodes)})" for reason, nodes in nodes_by_reason.items()
        )
        for name, nodes_by_reason in sorted(by_port.items(), key=lambda port: natural_key(port[0]))
    }


def _match(match: MatchEntryForm, reason_by_field: dict[str, str]) -> Iterator[str]:
    yield "  match:"
    for key, value in match.items():
        reason = reason_by_field.get(f"match.{key}", "")
        if key == "nodeLabels":
            yield from _comment(reason, "    ")
            yield "    nodeLabels:"
            yield from (
                f"      {_scalar(label)}: {_flow(values)}"
                for label, values in match["nodeLabels"].items()
            )
        else:
            yield from _line(f"    {key}: {_flow(value)}", reason, "    ")


def _line(written: str, reason: str, indent: str) -> Iterator[str]:
    """Yield a line followed by its reason, or the reason above it if both do not fit."""
    reason = visible(reason)
    if reason and len(written) + len(reason) + 4 <= _MAX_WIDTH:
        yield f"{written}  # {reason}"
        return
    yield from _comment(reason, indent)
    yield written


def _comment(text: str, indent: str) -> Iterator[str]:
    line = ""
    for word in visible(text).split():
        if line and len(indent) + len(line) + len(word) + 3 > _MAX_WIDTH:
            yield f"{indent}# {line}"
            line = ""
        line = f"{line} {word}".strip()
    if line:
        yield f"{indent}# {line}"


def _flow(value: object) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key}: {_flow(nested)}" for key, nested in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(_flow(element) for element in value) + "]"
    return _scalar(value) if isinstance(value, str) else json.dumps(value)


def _scalar(text: str) -> str:
    if _PLAIN.fullmatch(text) and text.lower() not in _NOT_TEXT:
        return text
    return json.dumps(text)
