"""Write Kubernetes objects as YAML, with comments above them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any

import yaml

from webhook.text.escape import visible

_WIDEST = 100
#: Ids of PCI: some readers of YAML take 10e5 for a number.
_DIGITS = re.compile(r"[0-9a-fA-F]+")


class _Dumper(yaml.SafeDumper):
    """Writes texts of several lines as such."""


def _text(dumper: yaml.SafeDumper, value: str) -> yaml.ScalarNode:
    style = "|" if "\n" in value else '"' if _DIGITS.fullmatch(value) else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", value, style=style)


_Dumper.add_representer(str, _text)


def manifest(comments: Iterable[str], *objects: Mapping[str, Any]) -> str:
    """Return objects as a stream of documents, after comments."""
    lines = [line for comment in comments for line in _comment(comment)]
    documents = [
        yaml.dump(dict(one), Dumper=_Dumper, sort_keys=False, width=_WIDEST, allow_unicode=True)
        for one in objects
    ]
    return "".join(f"{line}\n" for line in lines) + "---\n".join(documents)


def json_field(value: Any) -> str:
    """Return JSON that people read, for a field of an object."""
    return json.dumps(value, indent=2) + "\n"


def _comment(words: str) -> list[str]:
    lines = ["#"]
    for word in visible(words).split():
        if len(lines[-1]) + len(word) + 1 > _WIDEST:
            lines.append("#")
        lines[-1] += f" {word}"
    return lines
