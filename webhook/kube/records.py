"""Records of what is in JSON: named fields, none of which is required.

In a file, an object may have any shape. So a value of a wrong type reads as absent, and reading
raises nothing. A record is read from JSON, never made of other records.
"""

from __future__ import annotations

from typing import Annotated, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, PlainValidator, model_validator
from pydantic.alias_generators import to_camel


def text_of(value: object) -> str:
    """Return a string; "" for anything else."""
    return value if isinstance(value, str) else ""


def _number(value: object) -> int:
    return value if type(value) is int else 0


def _flag(value: object) -> bool:
    return value is True


def _is_there(value: object) -> bool:
    return value is not None


def _values(value: object) -> dict[str, object]:
    found = value.items() if isinstance(value, dict) else ()
    return {key: entry for key, entry in found if isinstance(key, str)}


def _texts(value: object) -> dict[str, str]:
    return {key: entry for key, entry in _values(value).items() if isinstance(entry, str)}


def _mappings(value: object) -> list[object]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def _mapping_or_none(value: object) -> object:
    return value if isinstance(value, dict) else None


_Item = TypeVar("_Item")
#: "" for anything but a string.
Text = Annotated[str, PlainValidator(text_of)]
#: 0 for anything but an integer.
Number = Annotated[int, PlainValidator(_number)]
#: Whether the value is true.
Flag = Annotated[bool, PlainValidator(_flag)]
#: Whether there is any value but null.
Presence = Annotated[bool, PlainValidator(_is_there)]
#: The entries of a mapping, of which the values may have any type.
Values = Annotated[dict[str, object], PlainValidator(_values)]
#: The entries of a mapping whose values are strings.
Texts = Annotated[dict[str, str], PlainValidator(_texts)]
#: The mappings of a list, as records.
Items = Annotated[tuple[_Item, ...], BeforeValidator(_mappings)]
#: A record; None for anything but a mapping.
Maybe = Annotated[_Item | None, BeforeValidator(_mapping_or_none)]


class Record(BaseModel):
    """The base of all records; anything but a mapping reads as an empty one."""

    # Most commands need few of the records, so each is built when it is first read.
    model_config = ConfigDict(alias_generator=to_camel, defer_build=True, frozen=True)

    @model_validator(mode="before")  # type: ignore[pydantic-alias] # only validation makes these models
    @classmethod
    def _mapping(cls, value: object) -> object:
        return value if isinstance(value, dict) else {}
