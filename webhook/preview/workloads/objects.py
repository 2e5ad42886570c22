"""The metadata of any object, and field types for records (`webhook.kube.records`).

A document may be any JSON, so a field of another type counts as absent, like null.
"""

from __future__ import annotations

from typing import Annotated, NamedTuple, Self, TypeVar

from pydantic import AliasPath, Field, PlainValidator
from pydantic_core import PydanticUseDefault

from webhook.kube.records import text_of
from webhook.model.pod import Path, at, fields_or_empty


def scalar_text(value: object, default: str = "") -> str:
    """Return a string or a number as a string; the default for anything else.

    An empty string and 0 also give the default. A number that Kubernetes refuses may have more
    digits than Python converts.
    """
    if isinstance(value, int) and abs(value) < _INT64:
        return str(value) if value else default
    return text_of(value) or default


_INT64 = 1 << 63


def _scalar_text(value: object) -> str:
    if text := scalar_text(value):
        return text
    raise PydanticUseDefault


#: A string or a number, as a string; the field's default for anything else, 0 and "" included.
TextOrDefault = Annotated[str, PlainValidator(_scalar_text)]
#: A mapping; an empty one for anything else.
MappingOrEmpty = Annotated[dict[str, object], PlainValidator(fields_or_empty)]


_Default = TypeVar("_Default")


def below(*path: str, default: _Default) -> _Default:
    """Declare a field that is read at a path below the mapping."""
    return Field(default, validation_alias=AliasPath(*path))


class ObjectMetadata(NamedTuple):
    """The kind and metadata of an object or a pod template; names may be any JSON, unparsed."""

    kind: object
    name: object
    generate_name: object
    namespace: object
    labels: dict[str, object]
    annotations: dict[str, object]

    @classmethod
    def of(cls, node: object) -> Self:
        """Read a mapping; anything else is read as an empty one."""
        value = fields_or_empty(node)
        metadata = fields_or_empty(value.get("metadata"))
        return cls(
            value.get("kind"),
            metadata.get("name"),
            metadata.get("generateName"),
            metadata.get("namespace"),
            fields_or_empty(metadata.get("labels")),
            fields_or_empty(metadata.get("annotations")),
        )

    @property
    def full_name(self) -> str:
        """The namespace and the name, for a message: "lab/train"; "" without either."""
        return "/".join(str(part) for part in (self.namespace, self.name) if part)


def values_along(value: object, path: Path) -> list[object]:
    """List the values along an existing path: from the value itself to the value at the path."""
    values = [value]
    for step in path:
        values.append(at(values[-1], (step,)))
    return values
