"""What an output format is called: on the command line, in a query, and in `Accept`."""

from __future__ import annotations

from typing import NamedTuple


class OutputFormat(NamedTuple):
    """One output format of a command, or of an address of the server, or of both."""

    name: str  #: for `-o NAME` and `?output=NAME`
    summary: str  #: for --help
    #: In `Accept`, each requests this format; answers have the first. (): only a name requests it.
    media_types: tuple[str, ...] = ()


JSON_TYPES = ("application/json",)
#: A browser shows plain text as well.
TEXT_TYPES = ("text/plain", "text/html")
