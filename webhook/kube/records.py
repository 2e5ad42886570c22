"""Records read from JSON: named fields, all optional.

In a file, an object may have any shape. So a value of a wrong type counts as absent, and reading
never raises. Records are read from JSON, never made from other records.
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
    entries = value.items() if isinstance(value, dict) else ()
    return {key: entry for key, entry in entries if isinstance(key, str)}


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
#: Whether there is a value other than null.
Presence = Annotated[bool, PlainValidator(_is_there)]
#: The entries of a mapping, with values of any type.
Values = Annotated[dict[str, object], PlainValidator(_values)]
#: The entries of a mapping that have strings as values.
Texts = Annotated[dict[str, str], PlainValidator(_texts)]
#: The mappings of a list, as records.
Items = Annotated[tuple[_Item, ...], BeforeValidator(_mappings)]
#: A record; None for anything but a mapping.
Maybe = Annotated[_Item | None, BeforeValidator(_mapping_or_none)]


class LenientObject(BaseModel):
    """The fields of an object that are read; anything but a mapping becomes an empty object."""

    # Most commands need few of the records, so each is built at its first use.
    model_config = ConfigDict(alias_generator=to_camel, defer_build=True, frozen=True)

    @model_validator(mode="before")  # type: ignore[pydantic-alias] # only validation makes these models
    @classmethod
    def _mapping(cls, value: object) -> object:
        return value if isinstance(value, dict) else {}
