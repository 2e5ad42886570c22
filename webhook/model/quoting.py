"""Values of users in messages: quoted and cut, with work that does not grow with the value.

Python writes a list in a list in a list once for each level, and always as a whole: for a request
of 8 MB, that took half a minute.
"""

from __future__ import annotations

#: The maximum number of values in a list or mapping that is quoted.
_MAX_VALUES = 4
_MAX_LENGTH = 80  # characters
_MAX_DESCRIBED_LENGTH = 60  # characters
_KINDS = ((dict, "a mapping"), (list, "a list"), (str, "a string"), (bool, "a boolean"))


def quoted(value: object, length: int = _MAX_LENGTH) -> str:
    """Quote a value, in at most `length` characters; name only the kind of a large list or mapping.

    A string is cut, so the closing quote of a long one is missing.
    """
    return (_written(value, length) or kind_of(value))[:length]


def describe(value: object) -> str:
    """Describe a value in a few words: "a list (['a'])"; "a list" if it is large."""
    written = _written(value, _MAX_DESCRIBED_LENGTH)
    if len(written) > _MAX_DESCRIBED_LENGTH:
        written = written[: _MAX_DESCRIBED_LENGTH - 1] + "…"
    return f"{kind_of(value)} ({written})" if written else kind_of(value)


def kind_of(value: object) -> str:
    """Return the kind of a value: "a mapping", "a list", "a string", "a boolean", "a number"."""
    return next((kind for cls, kind in _KINDS if isinstance(value, cls)), "a number")


def _written(value: object, length: int) -> str:
    """Return a value as Python writes it, cut to more than `length` characters; "" if too large."""
    if isinstance(value, (dict, list)) and not _is_small(value, length):
        return ""
    try:
        return repr(value[:length] if isinstance(value, str) else value)
    except ValueError:  # Python refuses to convert an integer of more than 4300 digits
        return "too many digits to be shown"


def _is_small(value: dict[object, object] | list[object], length: int) -> bool:
    """Return whether a list or mapping has few values, none of them long or nested."""
    if len(value) > _MAX_VALUES:
        return False
    values = [*value, *value.values()] if isinstance(value, dict) else value
    return not any(
        isinstance(part, (dict, list)) or (isinstance(part, str) and len(part) > length)
        for part in values
    )
