"""The options of `serve` reach the server."""

from __future__ import annotations

import pytest

from tests.unit.cli.shell import Shell
from webhook.cli import serve
from webhook.serve.options import ServeOptions


@pytest.mark.parametrize(
    ("word", "options"), [("on", (True, False)), ("off", (False, False)), ("only", (True, True))]
)
def test_previews(
    word: str, options: tuple[bool, bool], shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`--preview` says whether previews are served, and whether anything else is."""
    started: list[ServeOptions] = []

    def start(given: ServeOptions) -> int:
        started.append(given)
        return 7

    monkeypatch.setattr(serve, "serve", start)
    assert shell("serve", "--preview", word).code == 7
    (given,) = started
    assert (given.preview, given.preview_only) == options
