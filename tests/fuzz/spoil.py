"""Corrupt valid inputs: values, places, sizes and bytes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import orjson

from tests.fuzz.dice import Dice

#: Quantities that the API server's parser accepts or rejects in its own ways.
QUANTITIES: tuple[Any, ...] = (
    *("-9223372036854775807", "9223372036854775807", "9223372036854775808", "1e60", "1e400"),
    *(
        "1" * 65,
        "1e-60",
        "-1",
        "-0",
        "+1",
        ".5",
        "5.",
        "1.5",
        "1E",
        "1Ei",
        "8E",
        "16Ei",
        "1e3",
        "1E3",
    ),
    *(
        "1n",
        "1u",
        "100m",
        "0.0000000001",
        "1 Gi",
        " 1",
        "64GI",
        "64gi",
        "0x10",
        "\u0661",
        "",
        "NaN",
    ),
    *("Infinity", "1_000", "1e+3", "1e-3", "0.9999999999999999999", "1Ki", "1ki", "1e18Ki", "--1"),
    *(-1, 0, 2**31, 2**53 + 1, 2**63 - 1, -(2**63), 2**64 - 1, 1.5, 1e308, 5e-324, -0.0, True),
)
TEXTS: tuple[str, ...] = (
    *(
        "",
        " ",
        "true",
        "false",
        "null",
        "0",
        "é",
        "\u202e\u2066",
        "\x00",
        "\x1b]0;x\x07",
        "\x9b31m",
    ),
    *(
        "a\nb",
        "\r\n",
        "\ufeff",
        "\ud7ff",
        "\U0001f600" * 20,
        "x" * 300,
        "=",
        ",",
        ",,",
        "{}",
        "[",
        "@",
    ),
    *("$(X)", "$$", "a/b", "~0~1", "a" * 5000, "\u2028", "None", "0 ", "\t", "-", "é" * 70, "\x85"),
)
SCALARS: tuple[Any, ...] = (
    *(None,) * 4,
    True,
    False,
    [],
    {},
    [None],
    {"": None},
    [[]],
    *QUANTITIES,
)

Tree = dict[str, Any] | list[Any]


def spoilt(dice: Dice, value: Any) -> Any:
    """Return the value with one to four changes, still JSON; edits it in place."""
    for _ in range(1 + dice.small(3)):
        if value.__class__ not in (dict, list) or not value:
            return value
        nodes = _nodes(value)
        parent, key = dice.pick(nodes)
        dice.pick(_SPOILERS)(dice, parent, key, nodes)
    return value


def _nodes(value: Tree) -> list[tuple[Any, Any]]:
    """List every place below, as the parent with the key or index."""
    places: list[tuple[Any, Any]] = []
    todo: list[Any] = [value]
    while todo:
        node = todo.pop()
        for key, child in node.items() if node.__class__ is dict else enumerate(node):
            places.append((node, key))
            if child.__class__ is dict or child.__class__ is list:
                todo.append(child)
    return places


def _copied(value: Any) -> Any:
    return orjson.loads(orjson.dumps(value))


Places = list[tuple[Any, Any]]


def _scalar(dice: Dice, parent: Any, key: Any, _: Places) -> None:
    parent[key] = _copied(dice.pick(SCALARS))


def _text(dice: Dice, parent: Any, key: Any, _: Places) -> None:
    drawn = dice.pick(TEXTS)
    old = parent[key]
    parent[key] = old + drawn if old.__class__ is str and dice.one_in(2) else drawn


def _removed(_: Dice, parent: Any, key: Any, __: Places) -> None:
    del parent[key]


def _elsewhere(dice: Dice, parent: Any, key: Any, nodes: Places) -> None:
    """Copy a value from another place."""
    other, its = dice.pick(nodes)
    parent[key] = _copied(other[its])


def _renamed(dice: Dice, parent: Any, key: Any, nodes: Places) -> None:
    """Give a value the key of another value, or an odd key."""
    if parent.__class__ is not dict:
        return _turned(dice, parent, key, nodes)
    other = dice.pick(nodes)[1]
    parent[other if other.__class__ is str and dice.one_in(2) else dice.pick(TEXTS)] = parent.pop(
        key
    )
    return None


def _turned(_: Dice, parent: Any, key: Any, __: Places) -> None:
    """Reverse the order of a list, or of a mapping's keys."""
    if parent.__class__ is list:
        parent.reverse()
    elif parent[key].__class__ is list:
        parent[key].reverse()
    elif parent[key].__class__ is dict:
        parent[key] = dict(reversed(parent[key].items()))


def _twice(dice: Dice, parent: Any, key: Any, _: Places) -> None:
    if parent.__class__ is list:
        parent.insert(dice.below(len(parent) + 1), _copied(parent[key]))
    else:
        parent[key] = [parent[key], _copied(parent[key])]


def _wrapped(dice: Dice, parent: Any, key: Any, _: Places) -> None:
    """Nest a value one level deeper, or deeper than in any real pod."""
    depth = dice.pick((2, 10, 50)) if dice.one_in(8) else 1
    for _turn in range(depth):
        parent[key] = [parent[key]] if dice.one_in(2) else {"x": parent[key]}


_SPOILERS: tuple[Callable[[Dice, Any, Any, Places], None], ...] = (
    *(_scalar, _scalar, _scalar, _text, _text, _removed, _removed, _elsewhere, _elsewhere),
    *(_renamed, _turned, _twice, _wrapped),
)


# Sizes


def grown(dice: Dice, value: Tree, size: int) -> None:
    """Repeat the value at one place until there are about `size` bytes; edit it in place."""
    kind = dice.pick(_GROWING)
    by_name: dict[str, Places] = {}
    for parent, key in _nodes(value):
        if parent[key].__class__ is kind and parent[key]:
            by_name.setdefault(str(key), []).append((parent, key))
    if not by_name:
        return
    parent, key = dice.pick(by_name[dice.pick(sorted(by_name))])
    child = parent[key]
    if child.__class__ is str:
        parent[key] = _longer(dice, child, size)
    elif child.__class__ is list:
        _repeat(dice, child, size)
    else:
        name, content = dice.pick(list(child.items()))
        entry_size = len(orjson.dumps({name: content}, default=str)) + 5
        child.update({f"{name}{number}": content for number in range(size // entry_size)})


#: Mostly lists, since loops run over lists.
_GROWING: tuple[type, ...] = (list, list, list, list, dict, str)


def _longer(dice: Dice, text: str, size: int) -> str:
    joint = dice.pick(("", ",", "\n", " ", ", ", "/"))
    if dice.one_in(2):
        return joint.join(f"{text}{number}" for number in range(size // (len(text) + 6)))
    return joint.join([text] * (size // (len(text) + len(joint))))


def _repeat(dice: Dice, listed: list[Any], size: int) -> None:
    sample = dice.pick(listed)
    count = size // (len(orjson.dumps(sample)) + 4)
    name = sample.get("name") if sample.__class__ is dict else None
    if name.__class__ is str and dice.one_in(1.3):
        listed += [sample | {"name": f"{name}{number}"} for number in range(count)]
    elif sample.__class__ is str and dice.one_in(2):
        listed += [f"{sample}{number}" for number in range(count)]
    else:
        listed += [sample] * count


# Bytes


def perhaps_corrupted_json(dice: Dice, value: Any) -> bytes:
    """Write JSON, rarely with text that no well-behaved writer would write."""
    if not dice.one_in(10):
        return orjson.dumps(value)
    raw = _marked(dice, value)
    return dice.pick(_BYTES)(dice, raw) if dice.one_in(1.5) else raw


_RAW: tuple[bytes, ...] = (
    *(
        b"1" * 400,
        b"-1" + b"0" * 40,
        b"1e400",
        b"-1e-400",
        b"NaN",
        b"Infinity",
        b"18446744073709551616",
    ),
    *(
        b'"\\ud800"',
        b'"\\udc00\\ud800"',
        b'"\\u0000"',
        b"1.0",
        b"1E2",
        b"00",
        b"'x'",
        b"tru",
        b"1" * 5000,
    ),
    *(b"[" * 300 + b"]" * 300, b'{"a":' * 300 + b"1" + b"}" * 300, b"[" * 2000, b"0.1e1"),
)
_MARK = "@@mark@@"


def _marked(dice: Dice, value: Any) -> bytes:
    """Write one value as raw bytes, or one key a second time."""
    nodes = _nodes(value) if value.__class__ in (dict, list) and value else []
    if not nodes:
        return orjson.dumps(value)
    parent, key = dice.pick(nodes)
    if parent.__class__ is dict and dice.one_in(2):
        other, its = dice.pick(nodes)
        parent[_MARK] = _copied(other[its]) if dice.one_in(2) else dice.pick(TEXTS)
        return orjson.dumps(value).replace(orjson.dumps(_MARK), orjson.dumps(key))
    parent[key] = _MARK
    return orjson.dumps(value).replace(orjson.dumps(_MARK), dice.pick(_RAW))


def _cut(dice: Dice, data: bytes) -> bytes:
    return data[: dice.below(len(data) + 1)]


def _flipped(dice: Dice, data: bytes) -> bytes:
    changed = bytearray(data)
    for _ in range(1 + dice.small(4) if data else 0):
        changed[dice.below(len(changed))] = dice.below(256)
    return bytes(changed)


def _without(dice: Dice, data: bytes) -> bytes:
    start = dice.below(len(data) + 1)
    return data[:start] + data[start + 1 + dice.small(40) :]


def _before(dice: Dice, data: bytes) -> bytes:
    return dice.pick((b"\xef\xbb\xbf", b" \n", b"\xff\xfe", b"[", b"\x00")) + data


def _behind(dice: Dice, data: bytes) -> bytes:
    return data + dice.pick((b"\n", b"x", b"{}", b"\x00", b"]", b","))


def _other_coding(_: Dice, data: bytes) -> bytes:
    return data.decode(errors="replace").encode("utf-16")


def _empty(_: Dice, __: bytes) -> bytes:
    return b""


_BYTES: tuple[Callable[[Dice, bytes], bytes], ...] = (
    *(_cut, _cut, _flipped, _flipped, _without, _without, _before, _behind, _other_coding),
    _empty,
)
