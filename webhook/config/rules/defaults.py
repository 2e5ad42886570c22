"""Rules for `defaults`."""

from __future__ import annotations

from collections.abc import Iterator

from webhook.config.rules.rule import Parts, Problem


def old_memlock(parts: Parts) -> Iterator[Problem]:
    """Warn of `memlock: default`, the former name of `unknown`.

    A warning: it means the same, but the next version will not read it.
    """
    if parts.model.defaults.memlock == "default":
        yield Problem(("defaults", "memlock"), "'default' has been renamed: write unknown")
