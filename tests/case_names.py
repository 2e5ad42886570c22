"""Names of parametrized cases, derived from their values: `ids=case_name`.

pytest numbers pods and other mappings, and `ids=str` differs between the workers of pytest-xdist.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import singledispatch
from typing import Any

from webhook.model.decision import Reason
from webhook.model.fabric import Fabric
from webhook.model.facts import NamespaceFacts

#: Characters kept at the start and end of a value: cases often differ only at the end.
_HEAD, _TAIL = 40, 80
#: The bits of the largest number that is written out.
_BITS = 256
#: Fields that the builders give to every pod and container, so they distinguish no cases.
_USUAL = {
    ("image", "lab/train"),
    ("name", "job"),
    ("name", "trainer"),
    ("namespace", "lab"),
    ("rdma.lab/enable", "true"),
}


def case_name(value: object) -> str:
    """Write a value briefly: as YAML without quotes, with only the unusual fields of pods.

    The name is the same in every process: pytest-xdist compares the names that its workers find.
    It is printable ASCII without a backslash: pytest escapes other characters again each time it
    collects, and mutmut, which collects again in the same process, would not find the case.
    """
    written = "".join(_plain(character) for character in _written(value))
    if len(written) <= _HEAD + _TAIL:
        return written
    return f"{written[:_HEAD]}...{written[-_TAIL:]}"


def _plain(character: str) -> str:
    plain = " " <= character <= "~" and character != "\\"
    return character if plain else f"U+{ord(character):04X}"


@singledispatch
def _written(value: object) -> str:
    return str(value)


@_written.register
def _(value: str) -> str:
    return value or '""'


@_written.register
def _(value: int) -> str:
    long = value.bit_length() > _BITS
    return f"{'-' * (value < 0)}2^{value.bit_length()}" if long else str(value)


@_written.register(list)
@_written.register(tuple)
def _(value: Iterable[object]) -> str:
    return f"[{','.join(_written(element) for element in value)}]"


@_written.register(set)
@_written.register(frozenset)
def _(value: Iterable[object]) -> str:
    return f"[{','.join(sorted(_written(element) for element in value))}]"


@_written.register
def _(value: Fabric) -> str:
    return value.name


@_written.register
def _(value: Reason) -> str:
    return value.code


@_written.register
def _(value: NamespaceFacts) -> str:
    return f"namespace {_written(value.annotations)}{' unknown' * (not value.is_loaded)}"


@_written.register(Mapping)
def _(value: Mapping[Any, Any]) -> str:
    metadata = value.get("metadata")
    if "spec" in value and isinstance(metadata, Mapping):
        annotations = _written(metadata.get("annotations") or {})
        return f"{annotations} {_written(value['spec'])}".removeprefix("{} ")
    pairs = (
        f"{_written(key)}:{_written(member)}"
        for key, member in value.items()
        if not (isinstance(member, str) and (key, member) in _USUAL)
    )
    return f"{{{','.join(pairs)}}}"
