"""Make a case that breaks a law as small as possible, while it still breaks the same law."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from time import monotonic
from typing import Any, TypeVar

from tests.fuzz.target import Parts

T = TypeVar("T")
Fails = Callable[[Any], bool]


def shrunk(parts: Parts, breaks: Callable[[Parts], bool], *, seconds: float = 60) -> Parts:
    """Return a smaller case that also `breaks` the law, or the same case without any.

    The search stops after `seconds`, with the smallest case so far.
    """
    until = monotonic() + seconds
    smallest = dict(parts)

    def tried(name: str, value: Any) -> bool:
        if monotonic() > until:
            raise _TimeIsUpError
        if not breaks({**smallest, name: value}):
            return False
        smallest[name] = value
        return True

    with suppress(_TimeIsUpError):
        for name in sorted(parts, key=lambda part: part != "body"):
            _shrink(smallest[name], partial(tried, name))
    return smallest


class _TimeIsUpError(Exception):
    """The time is up, so the smallest case so far is the result."""


def _shrink(value: Any, fails: Fails) -> None:
    if value.__class__ is bytes:
        _shrink_bytes(value, fails)
    elif value.__class__ is str:
        _fewer_lines(value, fails)
    else:
        _shrink_tree(value, fails)


def _shrink_bytes(data: bytes, fails: Fails) -> None:
    """Shrink as JSON, if the value alone breaks the law, else as text, else byte by byte."""

    def as_json(value: Any) -> bool:
        return fails(json.dumps(value).encode())

    try:
        value = json.loads(data)
    except (ValueError, RecursionError):
        value = None
    if value is not None and as_json(value):
        _shrink_tree(value, as_json)
        return
    try:
        _fewer_lines(data.decode(), lambda text: fails(text.encode(errors="surrogatepass")))
    except UnicodeDecodeError:
        _fewer(list(data), lambda subset: fails(bytes(subset)))


def _fewer_lines(text: str, fails: Fails) -> None:
    lines = _fewer(text.splitlines(keepends=True), lambda subset: fails("".join(subset)))
    _fewer(list("".join(lines)), lambda subset: fails("".join(subset)))


def _shrink_tree(value: Any, fails: Fails) -> None:
    """Remove whatever can be removed, from the root to the leaves, until nothing can be."""
    smaller = True
    while smaller:
        smaller = False
        for path in list(_paths(value)):
            old = _at(value, path)
            new = _simplest(old, partial(_fails_with, fails, value, path))
            if new is not old:
                value, smaller = _with(value, path, new), True


def _fails_with(fails: Fails, value: Any, path: tuple[Any, ...], new: Any) -> bool:
    return fails(_with(value, path, new))


_REMOVED = object()


def _simplest(old: Any, fails: Fails) -> Any:
    """Return a smaller value that still fails in that place, else the same object."""
    if old.__class__ is dict:
        pairs = list(old.items())
        subset = _fewer(pairs, lambda subset: fails(dict(subset)))
        return dict(subset) if len(subset) < len(pairs) else old
    if old.__class__ is list:
        subset = _fewer(old, fails)
        return subset if len(subset) < len(old) else old
    if old.__class__ is str and old:
        text = "".join(_fewer(list(old), lambda subset: fails("".join(subset))))
        return text if len(text) < len(old) else old
    return old


def _fewer(items: list[T], fails: Callable[[list[T]], bool]) -> list[T]:
    """Remove as many items as possible: all, halves, quarters, down to single ones."""
    size = len(items)
    while size:
        start = 0
        while start < len(items):
            remaining = items[:start] + items[start + size :]
            if fails(remaining):
                items = remaining
            else:
                start += size
        size //= 2
    return items


def _paths(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    yield path
    if value.__class__ in (dict, list):
        for key, child in value.items() if value.__class__ is dict else enumerate(value):
            yield from _paths(child, (*path, key))


def _at(value: Any, path: tuple[Any, ...]) -> Any:
    """Return the value at a path, or _REMOVED if it was removed meanwhile."""
    for step in path:
        try:
            value = value[step]
        except (LookupError, TypeError):
            return _REMOVED
    return value


def _with(value: Any, path: tuple[Any, ...], new: Any) -> Any:
    """Return a copy with another value at the end of the path."""
    if not path:
        return new
    copied = value.copy()
    copied[path[0]] = _with(value[path[0]], path[1:], new)
    return copied
