"""Read JSON of an API server that orjson refuses.

An API server stores the parameters for a driver in a ResourceClaim as their writer sent them:
nested up to 10,000 levels, with halves of surrogate pairs, and with bytes that are no UTF-8. In
`metadata.managedFields`, too, clients can write such a depth. orjson reads 1,024 levels and writes
254, and the standard library fails at about 1,000: so nobody could read a list with such an object,
or replace the object. Nothing that the webhook reads is deeper than MAX_DEPTH.
"""

from __future__ import annotations

import json
import re

import orjson

from webhook.model.json import Json

#: The deepest level that is kept; objects and lists at this level become empty.
MAX_DEPTH = 100
#: Any integer with fewer digits fits into 64 bits; Python reads none with more than 4,300.
_LONG = 19
#: Everything up to the next bracket outside a string, and the bracket; a quote in its place begins
#: a string without an end.
_UP_TO_BRACKET = re.compile(rb'(?:[^"\[\]{}]++|"(?:[^"\\]++|\\.)*+")*+([\[\]{}"]|\Z)', re.DOTALL)


def read_json(octets: bytes) -> Json:
    """Return the document, without what is too deep if it cannot be written again.

    Takes time linear in its length. Raise ValueError if it is not JSON.
    """
    try:
        document: Json = orjson.loads(octets)
        orjson.dumps(document)
    except (orjson.JSONDecodeError, orjson.JSONEncodeError):
        return json.loads(_shallow(octets).decode(errors="replace"), parse_int=_number)
    return document


def _number(digits: str) -> float:
    return int(digits) if len(digits) < _LONG else float(digits)


def _shallow(octets: bytes) -> bytes:
    """Return JSON whose objects and lists at MAX_DEPTH are empty."""
    depth, begin = 0, 0
    parts: list[bytes] = []
    for match in _UP_TO_BRACKET.finditer(octets):
        if match[1] in {b"{", b"["}:
            depth += 1
            if depth == MAX_DEPTH:
                parts.append(octets[begin : match.end()])
        elif match[1] in {b"}", b"]"}:
            if depth == MAX_DEPTH:
                begin = match.start(1)
            depth -= 1
    return b"".join((*parts, octets[begin:]))
