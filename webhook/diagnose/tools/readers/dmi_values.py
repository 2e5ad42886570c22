"""What DMI says of a machine, where its maker filled it in."""

from __future__ import annotations

#: What makers leave in fields that they do not fill in.
_NOTHING = frozenset(
    {"", "default string", "none", "not applicable", "not specified", "n/a", "no asset tag"}
    | {"to be filled by o.e.m.", "system product name", "system manufacturer", "unknown", "0"}
)


def dmi_value(text: str) -> str | None:
    """Return the value of a field; None where it is empty, or a placeholder or its beginning."""
    text = text.strip()
    return None if any(word.startswith(text.lower()) for word in _NOTHING) else text
