"""The fields of a view: each is read when it is first asked for, and kept.

A view has a `manifest`, the plain dict, and a `path`, at which that dict is in the pod.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar

from webhook.model.pod.reading import Path

Value = TypeVar("Value")


class Field(Generic[Value]):
    """What a reader by path finds at `steps` below the view."""

    def __init__(self, read: Callable[[Any, Path, Path], Value], *steps: str) -> None:
        self._read = read
        self._steps = steps
        self._absent = read({}, steps, ())
        #: A value of this type is right; others are left to the reader.
        self._right = self._absent.__class__ if self._absent.__class__ in (dict, bool) else None

    def __set_name__(self, _: type, name: str) -> None:
        """Note the name of the field."""
        self._name = name

    def __get__(self, view: Any, _: type) -> Value:
        """Read the field; from then on the value that the instance has hides this object."""
        written: Any = view.manifest
        for step in self._steps:
            written = written.get(step) if isinstance(written, dict) else None
        if written is None:
            value = self._absent
        elif written.__class__ is self._right:
            value = written
        else:
            value = self._read(view.manifest, self._steps, view.path)
        setattr(view, self._name, value)
        return value


class derived(Generic[Value]):  # noqa: N801 -- a decorator, as functools.cached_property is
    """What a method makes of other fields.

    As functools.cached_property, but without the lock that it has until Python 3.12.
    """

    def __init__(self, derive: Callable[[Any], Value]) -> None:
        self._derive = derive
        self._name = derive.__name__
        self.__doc__ = derive.__doc__

    def __get__(self, view: object, _: type) -> Value:
        """Derive the field; from then on the value that the instance has hides this object."""
        value = self._derive(view)
        setattr(view, self._name, value)
        return value
