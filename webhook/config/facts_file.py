"""Read the facts of a cluster from a file, for a preview without a cluster.

The file has the output of `kubectl get ns,limitrange,quota,node -A -o yaml` (or json): a List.
Typed lists, as the API returns them, and several documents are accepted as well.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path as File
from typing import Any

from webhook.config.files import decode, parse_yaml, read_file
from webhook.config.findings import refused
from webhook.config.messages import shown
from webhook.errors import ShapeError
from webhook.model.facts import Facts
from webhook.text.yaml.tree import TextLimits

KINDS = (
    *("Namespace", "LimitRange", "ResourceQuota", "Node"),
    *("ResourceClaimTemplate", "ResourceClaim"),
)
#: Enough for 10,000 nodes, which with their images take about 150 MB.
_LIMITS = TextLimits(octets=256 << 20, nodes=20_000_000, depth=100)
_HOW = "give the output of `kubectl get ns,limitrange,quota,node -A -o yaml`"


def load_facts(path: File) -> Facts:
    """Load facts; raise InvalidConfiguration if the file has none that can be used."""
    name = str(path)
    text = decode(read_file(path, _LIMITS), name)
    found = [item for data in _documents(text, name) for item in _objects(data, name)]
    if not found:
        raise refused(name, f"contains no objects: {_HOW}")
    try:
        return Facts.from_objects(found)
    except ShapeError as error:
        raise refused(name, f"contains an invalid object: {error}") from None


def _documents(text: str, name: str) -> Iterator[Any]:
    """Read JSON, which is many times faster for a large cluster, or else YAML."""
    if not text.lstrip().startswith("{"):
        yield from (document.data for document in parse_yaml(text, name, _LIMITS))
        return
    try:
        yield json.loads(text)
    except RecursionError:
        raise refused(name, "is nested too deeply") from None
    except ValueError:  # YAML that begins with a brace, or several documents
        yield from (document.data for document in parse_yaml(text, name, _LIMITS))


def _objects(data: Any, name: str) -> Iterator[dict[str, Any]]:
    if data is None:
        return
    kind = data.get("kind") if isinstance(data, dict) else None
    if kind in KINDS:
        yield data
        return
    if not isinstance(kind, str) or not kind.endswith("List"):
        raise refused(name, f"contains {_what(data, kind)}: {_HOW}")
    items = data.get("items")
    if not isinstance(items, list):
        raise refused(name, f"contains a {kind} whose items are {shown(items)}: {_HOW}")
    for item in items:
        # The items of a typed list have no kind.
        of = item.get("kind", kind.removesuffix("List")) if isinstance(item, dict) else None
        if of not in KINDS:
            raise refused(name, f"contains {_what(item, of)}: {_HOW}")
        yield {**item, "kind": of}


def _what(data: object, kind: object) -> str:
    return f"an object of kind {kind!r:.80}" if kind else f"{shown(data)} without a kind"
