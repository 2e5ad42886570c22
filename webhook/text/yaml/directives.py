"""Find directives (%YAML, %TAG) in a YAML text before a parser reads it.

libyaml's parser compares each `%TAG` with all before it, in one call that nothing can interrupt.
Only scanners run here, which look at each character once.
"""

from __future__ import annotations

import re
from typing import Any

import yaml

LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
#: YAML 1.1 has five line breaks (5.4). A `%` behind one begins a directive, or is text.
_BREAKS = "\n\r\x85\u2028\u2029"
#: Where only comments and blank lines stand in front of a `%`, it begins a directive.
_IN_FRONT = re.compile("\ufeff?(?:[ \t]*(?:#[^\n\r]*)?\r?\n)*(?=%)")

REFUSAL = "directives (%YAML, %TAG and others) are not supported: remove the line"


def directive(text: str) -> int | None:
    """Return the offset of the first directive of a YAML stream; None if there is none.

    A line inside a string may begin with `%` too. None is also returned where the text in front
    is not YAML: the parser then says what is wrong.
    """
    if "%" not in text:
        return None
    if in_front := _IN_FRONT.match(text):
        return in_front.end()
    return _scanned(text) if any(f"{one}%" in text for one in _BREAKS) else None


def _scanned(text: str) -> int | None:
    try:
        for token in yaml.scan(text, Loader=LOADER):
            if isinstance(token, yaml.DirectiveToken):
                return int(token.start_mark.index)
    except (yaml.YAMLError, UnicodeError):
        return None
    return None
