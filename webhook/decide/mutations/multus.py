"""The Multus networks annotation: `ns/name@if` lists and their JSON form.

Format: k8snetworkplumbingwg multi-net-spec v1.3, section 4.1 (comma list, or a
JSON list of mappings with `name`, `namespace`, `interface`).
"""

from __future__ import annotations

import re

import orjson

from webhook.model.annotations import NETWORKS_JSON


def networks_of(written: str, namespace: str) -> list[str] | None:
    """List the networks as `ns/name`, with the default namespace; return None if unreadable."""
    if NETWORKS_JSON.isdisjoint(written):
        return [qualified(item, namespace) for item in written.split(",") if item.strip()]
    try:
        entries = orjson.loads(written)
    except orjson.JSONDecodeError:
        return None
    if not isinstance(entries, list):
        return None
    found: list[str] = []
    for entry in entries:
        if not isinstance(entry, dict) or not isinstance(entry.get("name"), str):
            return None
        found.append(f"{entry.get('namespace') or namespace}/{entry['name']}")
    return found


def qualified(network: str, namespace: str) -> str:
    """Return one `[ns/]name[@if]` as `ns/name`."""
    name = network.strip().split("@", 1)[0]
    return name if "/" in name else f"{namespace}/{name}"


def without_clash(network: str, written: str, count: int) -> str:
    """Drop the `@interface` of our network if one of the `count` networks in `written` may use it.

    Multus names interfaces without a name net1, net2, …; the pod fails if two have the same name.
    """
    name, _, interface = network.partition("@")
    if not interface:
        return network
    taken = f"@{interface}" in written or f'"{interface}"' in written
    return name if taken or _number(interface) in range(1, count + 1) else network


def _number(interface: str) -> int:
    """Return the number in an interface name that Multus assigns (net1, net2, …), 0 for others."""
    found = _NUMBERED.fullmatch(interface)
    return int(found[1]) if found else 0


_NUMBERED = re.compile(r"net([1-9][0-9]{0,9})")


def extended(written: str, more: list[str]) -> str:
    """Append networks in the form that `written` has, and keep every byte of its entries."""
    if not written.strip():
        return ",".join(more)
    if not written.lstrip().startswith("["):
        return f"{written.rstrip().rstrip(',')},{','.join(more)}"
    head = written.rstrip()[:-1].rstrip()
    comma = "" if head.endswith("[") else ","
    return f"{head}{comma}{','.join(_entry(network) for network in more)}]"


def _entry(network: str) -> str:
    name, _, interface = network.partition("@")
    namespace, _, name = name.rpartition("/")
    entry = {"name": name}
    if namespace:
        entry["namespace"] = namespace
    if interface:
        entry["interface"] = interface
    return orjson.dumps(entry).decode()
