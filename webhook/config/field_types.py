"""The types of the fields of the fabrics file that YAML, JSON or users write in several ways."""

from __future__ import annotations

import re
from typing import Annotated, Literal, TypeGuard, TypeVar

from pydantic import BeforeValidator, Field, PlainValidator, WithJsonSchema
from pydantic_core import PydanticCustomError, to_jsonable_python

from webhook.model.quoting import quoted

_HEX = re.compile(r"0[xX][0-9A-Fa-f]{1,4}")
#: The upper bit of a partition key marks a full member; UCX_IB_PKEY omits it (0 to 0x7fff).
_PARTITION, _FULL_MEMBER = 0x7FFF, 0x8000
#: The maximum number of devices per container; no node has that many.
_MAX_DEVICES = 1000


def _as_written(value: object) -> object:
    """Turn a number or a boolean back into text: `NCCL_CROSS_NIC: 1` means "1"."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value) if isinstance(value, int) else value


def _is_integer(value: object) -> TypeGuard[int]:
    return type(value) is int  # `isinstance` takes a bool for an int


def _wrong_value(message: str) -> PydanticCustomError:
    """Return an error that, unlike a ValueError, is not itself in the list of errors.

    There its traceback would refer to the frame that has the list: a cycle with the whole file.
    """
    return PydanticCustomError("value_error", "{message}", {"message": message})


def _count(value: object) -> object:
    if value == "per-gpu" or (_is_integer(value) and 1 <= value <= _MAX_DEVICES):
        return value
    choices = f"a whole number from 1 to {_MAX_DEVICES}, or per-gpu"
    raise _wrong_value(f"count must be {choices}, not {quoted(value)}")


def _partition_key(value: object) -> int:
    number = int(value, 16) if isinstance(value, str) and _HEX.fullmatch(value) else value
    if _is_integer(number) and 0 < number <= _FULL_MEMBER | _PARTITION and number & _PARTITION:
        return number & _PARTITION
    raise _wrong_value(
        f"{quoted(value)} is not a partition key; write 0x1 to 0x7fff, or 0x8001 to 0xffff with "
        "the membership bit"
    )


def _false_is_off(value: object) -> object:
    """Read false as `off`: kubectl reads YAML 1.1, where an unquoted off is false."""
    return "off" if value is False else value


def _as_list(value: object) -> object:
    return [value] if isinstance(value, (str, int)) else value


_Value = TypeVar("_Value")


def shared_default(value: _Value) -> _Value:
    """Return a default that all entries share; pydantic would make a deep copy for each of them."""
    written = to_jsonable_python(value)
    shared: _Value = Field(default_factory=lambda: value, json_schema_extra={"default": written})
    return shared


Text = Annotated[str, BeforeValidator(_as_written)]
Scalar = Annotated[Text, WithJsonSchema({"type": ["string", "integer", "boolean"]})]
GlobList = Annotated[
    list[Text],
    BeforeValidator(_as_list),
    WithJsonSchema({"type": ["string", "array"], "items": {"type": "string"}, "minItems": 1}),
]
Count = Annotated[
    int | Literal["per-gpu"],
    PlainValidator(_count),
    WithJsonSchema({"anyOf": [{"type": "integer", "minimum": 1}, {"const": "per-gpu"}]}),
]
PartitionKey = Annotated[
    int,
    PlainValidator(_partition_key),
    WithJsonSchema(
        {
            "anyOf": [
                {"type": "integer", "minimum": 1, "maximum": _FULL_MEMBER | _PARTITION},
                {"type": "string", "pattern": f"^{_HEX.pattern}$"},
            ]
        }
    ),
]
Hcoll = Annotated[Literal["auto", "env", "off"], BeforeValidator(_false_is_off)]
