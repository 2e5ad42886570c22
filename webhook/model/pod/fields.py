"""The fields of a view: each is read when it is first asked for, and kept.

A view has a `manifest`, the plain dict, and a `path`, at which that dict is in the pod.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

from webhook.model.json import Json
from webhook.model.pod.reading import Path

Value = TypeVar("Value")


class Field(Generic[Value]):
    """The value at `steps` below the view, checked."""

    def __init__(self, check: Callable[[Json, Path, Path], Value], *steps: str) -> None:
        self._check = check
        self._steps = steps
        self._first, *self._below = steps
        self._absent = check(None, steps, ())
        #: A value of this type is right; others are left to the check.
        self._right = self._absent.__class__ if self._absent.__class__ in (dict, bool) else None

    def __set_name__(self, _: type, name: str) -> None:
        """Note the name of the field."""
        self._name = name

    def __get__(self, view: Json, _: type) -> Value:
        """Read the field; from then on the value that the instance has hides this object."""
        written = view.manifest.get(self._first)
        if self._below:
            for step in self._below:
                written = written.get(step) if isinstance(written, dict) else None
        if written.__class__ is self._right:
            value = written
        elif written is None:
            value = self._absent
        else:
            value = self._check(written, self._steps, view.path)
        setattr(view, self._name, value)
        return value


class derived(Generic[Value]):  # noqa: N801 -- a decorator, as functools.cached_property is
    """What a method makes of other fields.

    As functools.cached_property, but without the lock that it has until Python 3.12.
    """

    def __init__(self, derive: Callable[[Json], Value]) -> None:
        self._derive = derive
        self._name = derive.__name__
        self.__doc__ = derive.__doc__

    def __get__(self, view: object, _: type) -> Value:
        """Derive the field; from then on the value that the instance has hides this object."""
        value = self._derive(view)
        setattr(view, self._name, value)
        return value
