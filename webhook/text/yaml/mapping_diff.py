"""Compare the entries of a mapping in a text with the mapping that it is to become."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from webhook.text.yaml.tree import YamlNode
from webhook.text.yaml.values import mapping_key, same_json


class Entries:
    """Which entries stay and which are added; of a repeated key, the last entry counts."""

    def __init__(self, node: YamlNode, old: dict[str, Any], new: dict[str, Any]) -> None:
        self.pairs = list(node.pairs)
        self._names = [None if key.merges else mapping_key(key) for key, _ in self.pairs]
        written = set(self._names)
        #: Whether each pair stays; `<<` always does.
        self.stays = [name is None or name in new for name in self._names]
        #: The entries that the text lacks, other than those that `<<` merges in unchanged.
        self.added = {
            key: value
            for key, value in new.items()
            if key not in written and not (key in old and same_json(old[key], value))
        }

    @property
    def last_kept(self) -> int:
        """The index of the last pair that stays."""
        return max(index for index, stays in enumerate(self.stays) if stays)

    def kept(self) -> Iterator[tuple[str, YamlNode, YamlNode]]:
        """Yield name, key node and value node of the entries that stay, changed or not."""
        last = {name: value for name, (_, value) in zip(self._names, self.pairs, strict=True)}
        for name, (key, value), stays in zip(self._names, self.pairs, self.stays, strict=True):
            if name is not None and stays and value is last[name]:
                yield name, key, value
