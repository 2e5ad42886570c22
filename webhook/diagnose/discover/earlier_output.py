"""Read the nodes of an earlier output of `discover -o json`, also of one by an earlier version."""

from __future__ import annotations

import json
from collections.abc import Mapping

from webhook.diagnose.discover.node_form import NodeForm, PortForm
from webhook.errors import DocumentError

#: Keys that earlier versions did not write, or that the comparison does not need.
_PORT_DEFAULTS: Mapping[str, object] = {
    **dict.fromkeys(PortForm.__annotations__),
    "gids": [],
    "sources": [],
}
_NODE_DEFAULTS: Mapping[str, object] = {"machineType": None, "findings": []}


def earlier_nodes(text: str, name: str) -> list[NodeForm]:
    """Read the nodes from an output of `discover -o json`; DocumentError for another text."""
    from pydantic import TypeAdapter, ValidationError  # noqa: PLC0415 -- slow to import

    try:
        form = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise _not_discover_json(name, f"it is not JSON: {error}") from None
    nodes = form.get("nodes") if isinstance(form, dict) else None
    if not isinstance(nodes, list):
        raise _not_discover_json(name, "it has no list `nodes`")
    try:
        return TypeAdapter(list[NodeForm]).validate_python(
            [_with_defaults(node) for node in nodes], strict=True
        )
    except ValidationError as error:
        first = error.errors()[0]
        place = "".join(
            f"[{part}]" if isinstance(part, int) else f".{part}" for part in first["loc"]
        )
        raise _not_discover_json(name, f"nodes{place}: {first['msg']}") from None


def _not_discover_json(name: str, reason: str) -> DocumentError:
    return DocumentError(
        f"{name}: is not an output of `rdma-webhook discover -o json` that this version can read "
        f"({reason}); write one with `rdma-webhook discover ... -o json`"
    )


def _with_defaults(node: object) -> object:
    if not isinstance(node, dict):
        return node
    ports = node.get("ports")
    if isinstance(ports, list):
        ports = [{**_PORT_DEFAULTS, **port} if isinstance(port, dict) else port for port in ports]
        node = {**node, "ports": ports}
    return {**_NODE_DEFAULTS, **node}
