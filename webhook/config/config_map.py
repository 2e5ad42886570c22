"""Find the fabrics file inside a ConfigMap, which is how a cluster has it."""

from __future__ import annotations

from typing import Any, NamedTuple

from webhook.config.explain import listed
from webhook.config.findings import refused
from webhook.config.model import KIND
from webhook.config.yaml_file import LocatedData
from webhook.yamltext.positions import Shift


class Held(NamedTuple):
    """A text to read, what messages call it, and where it stands in its file."""

    text: str
    name: str
    shift: Shift = Shift()


def held_file(document: LocatedData, text: str, name: str) -> Held | None:
    """Return the fabrics file that a ConfigMap holds; None for a document of another kind.

    Of several keys, the one whose text names the kind of a fabrics file is taken. Raises
    InvalidConfiguration if it is not clear which text to read.
    """
    if document.data.get("kind") != "ConfigMap":
        return None
    data = document.data.get("data")
    key, held = _only_text(data if isinstance(data, dict) else {}, document, name)
    above = document.line(("data", key))
    columns = _indentation(held, text, above)
    if columns is None:
        return Held(held, f'{name} data["{key}"]')
    return Held(held, name, Shift(above, columns))


def _only_text(data: dict[str, Any], document: LocatedData, name: str) -> tuple[str, str]:
    texts = {key: value for key, value in data.items() if isinstance(value, str)}
    likely = {key: value for key, value in texts.items() if KIND in value} or texts
    if len(likely) == 1:
        return next(iter(likely.items()))
    line = document.line(("data",))
    if not likely:
        raise refused(name, "is a ConfigMap, but its data has no fabrics file", line)
    keys = listed(list(likely), most=5)
    raise refused(
        name,
        f"is a ConfigMap with several files ({keys}): save one of them, and give that file",
        line,
    )


def _indentation(held: str, text: str, above: int) -> int | None:
    """Return how far the lines below line `above` are indented, if they are those of `held`.

    Return None if they differ, as those of a string in quotes do: lines and columns of the text are
    then not those of the file.
    """
    lines = held.rstrip("\n").split("\n")
    written = text.split("\n")[above : above + len(lines)]
    first = next((place for place, line in enumerate(lines) if line), None)
    if first is None or len(written) < len(lines):
        return None
    indent = written[first].removesuffix("\r").removesuffix(lines[first])
    same = all(
        one.rstrip() == (indent + other if other else "").rstrip()
        for one, other in zip(written, lines, strict=True)
    )
    return len(indent) if same and not indent.strip() else None
