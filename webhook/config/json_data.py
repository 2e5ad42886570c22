"""An object as the API server writes it, within the limits of a fabrics file."""

from __future__ import annotations

import json
from typing import Any

from webhook.config.findings import refused
from webhook.model.path import Path
from webhook.text.yaml.tree import TextLimits


class JsonData:
    """Data without lines, whose size has been checked."""

    def __init__(self, data: dict[str, Any], name: str, limits: TextLimits) -> None:
        """Raise InvalidConfiguration if the data is over a limit."""
        self.data = data
        _check_shape(data, name, limits)
        #: The data as JSON.
        self.text = json.dumps(data, ensure_ascii=False)
        if len(self.text) > limits.octets:
            raise refused(name, f"is larger than {limits.octets:,} characters, the maximum")

    def line(self, path: Path) -> None:
        """Return None: an object has no lines."""


def _check_shape(data: dict[str, Any], name: str, limits: TextLimits) -> None:
    """Count values level by level, so that no depth can exhaust the stack."""
    level: list[Any] = [data]
    values = 0
    for _ in range(limits.depth):
        values += len(level)
        if values > limits.nodes:
            raise refused(name, f"contains more than {limits.nodes:,} values, the maximum")
        level = [child for one in level for child in _children(one)]
        if not level:
            return
    raise refused(name, f"is nested deeper than {limits.depth} levels")


def _children(one: Any) -> list[Any]:
    if isinstance(one, dict):
        return [*one, *one.values()]  # a key counts, as it does in YAML
    return one if isinstance(one, list) else []
