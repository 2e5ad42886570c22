"""The bundled examples of fabrics, to recognize them when they are used as somebody's own."""

from __future__ import annotations

from functools import cache

from webhook.config import EXAMPLE
from webhook.config.load import parse_fabrics
from webhook.model.fabric import CompiledConfiguration


@cache
def _texts() -> tuple[str, ...]:
    files = sorted(EXAMPLE.parent.glob("*.yaml"))
    return tuple(file.read_text(encoding="utf-8") for file in files)


def is_example(configuration: CompiledConfiguration) -> bool:
    """Return whether a configuration means the same as a bundled example.

    Comments and the order of keys do not matter. The files are read at the first call alone, so
    that a confined process can ask again.
    """
    texts = [text for text in _texts() if all(map(text.__contains__, configuration.fabrics))]
    return bool(configuration.fabrics) and any(
        parse_fabrics(text, EXAMPLE.name).compiled.config_hash == configuration.config_hash
        for text in texts
    )
