"""Read JSON of an API server, however deep it is nested.

An API server accepts 10,000 levels. Clients can write such a depth where it accepts any JSON, as in
the parameters for a driver in a ResourceClaim, and in `metadata.managedFields`. orjson reads 1,024
levels and writes 254, and the standard library fails at about 1,000: so nobody could read a list
with such an object, or replace the object. Nothing that the webhook reads is deeper than MAX_DEPTH.
"""

from __future__ import annotations

import re

import orjson

from webhook.model.json import Json

#: The deepest level that is kept; objects and lists at this level become empty.
MAX_DEPTH = 100
_TOKEN = re.compile(rb'"(?:[^"\\]++|\\.)*+"|[\[\]{}]', re.DOTALL)


def read_json(octets: bytes) -> Json:
    """Return the document, without what is too deep if it cannot be written again.

    Takes time linear in its length. Raise ValueError if it is not JSON.
    """
    try:
        document: Json = orjson.loads(octets)
        orjson.dumps(document)
    except (orjson.JSONDecodeError, orjson.JSONEncodeError):
        return orjson.loads(_shallow(octets))
    return document


def _shallow(octets: bytes) -> bytes:
    """Return JSON whose objects and lists at MAX_DEPTH are empty."""
    depth, begin = 0, 0
    parts: list[bytes] = []
    for token in _TOKEN.finditer(octets):
        if token[0] in {b"{", b"["}:
            depth += 1
            if depth == MAX_DEPTH:
                parts.append(octets[begin : token.end()])
        elif token[0] in {b"}", b"]"}:
            if depth == MAX_DEPTH:
                begin = token.start()
            depth -= 1
    return b"".join((*parts, octets[begin:]))
