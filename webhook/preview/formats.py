"""The output formats of a preview, on the command line and over HTTP, one line each.

`write_<name>` in `webhook.preview.writers` writes a format. The order is the same in --help. Over
HTTP, the first format is the default, and if `Accept` prefers two formats equally, the earlier one
is chosen. The writers are imported only to write a report, so that the server, which needs the
names, does not load them.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, NamedTuple

from webhook.errors import DocumentError

# The names of an output format: on the command line, in a query, and in `Accept`.


class OutputFormat(NamedTuple):
    """One output format of a command, or of a path of the server, or of both."""

    name: str  #: for `-o NAME` and `?output=NAME`
    summary: str  #: for --help
    #: The media types for this format in `Accept`; answers have the first. (): only by name.
    media_types: tuple[str, ...] = ()


JSON_TYPES = ("application/json",)
#: A browser shows plain text as well.
TEXT_TYPES = ("text/plain", "text/html")


if TYPE_CHECKING:
    from webhook.preview.writers import Write


_YAML = ("application/yaml", "application/x-yaml", "text/yaml", "text/x-yaml")
FORMATS = (
    OutputFormat("json", "the documented JSON form", JSON_TYPES),
    OutputFormat("yaml", "the patched documents, with their comments and order", _YAML),
    OutputFormat("text", "a report for people", TEXT_TYPES),
    OutputFormat("patch", "one RFC 6902 patch per document, each on a line"),
    OutputFormat("diff", "a unified diff"),
)
#: Formats whose output is applied to a cluster; never written from example fabrics.
FOR_CLUSTER = frozenset({"yaml", "patch", "diff"})
#: The formats served over HTTP, which have a media type.
HTTP_FORMATS = tuple(output_format for output_format in FORMATS if output_format.media_types)
_NAMES = frozenset(output_format.name for output_format in FORMATS)


def writer(name: str) -> Write:
    """Return the function that writes a format; raise KeyError if there is no such format."""
    if name not in _NAMES:
        raise KeyError(name)
    write: Write = getattr(import_module("webhook.preview.writers"), f"write_{name}")
    return write


# The length of an answer.

#: The largest number of characters of an answer over HTTP; beyond it, writing stops at once.
MAX_CHARACTERS = 32 << 20


def check_length(length: int, max_characters: int | None) -> None:
    """Raise DocumentError if an answer has too many characters; None: no limit."""
    if max_characters is not None and length > max_characters:
        raise DocumentError(
            f"the answer is longer than {max_characters >> 20} MiB; send fewer pods in one request"
        )
