"""What must be known of a YAML text before a parser reads it.

Only scanners are run here: they look at each character once. libyaml's parser compares each
`%TAG` with all before it, in one call that nothing can interrupt.
"""

from __future__ import annotations

import re
from typing import Any

import yaml

_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
#: YAML 1.1 has five line breaks (5.4); behind one a `%` may be text as well.
_BREAKS = "\n\r\x85\u2028\u2029"
#: In front of all that is no comment, where it is nothing else.
_IN_FRONT = re.compile("\ufeff?(?:[ \t]*(?:#[^\n\r]*)?\r?\n)*(?=%)")

REFUSAL = "directives (%YAML, %TAG and others) are not read: remove the line"


def directive(text: str) -> int | None:
    """Return the offset of the first directive of a YAML stream, None where it has none.

    A `%` at the beginning of a line inside a string is none. A text that is no YAML up to
    there has none either: its parser says what is wrong.
    """
    if "%" not in text:
        return None
    if in_front := _IN_FRONT.match(text):
        return in_front.end()
    return _scanned(text) if any(f"{one}%" in text for one in _BREAKS) else None


def _scanned(text: str) -> int | None:
    try:
        for token in yaml.scan(text, Loader=_LOADER):
            if isinstance(token, yaml.DirectiveToken):
                return int(token.start_mark.index)
    except (yaml.YAMLError, UnicodeError):
        return None
    return None
