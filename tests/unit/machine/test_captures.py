"""Saved text is taken apart by its machines."""

from __future__ import annotations

from webhook.machine.captures import Capture, captures
from webhook.machine.sightings import Line


def test_what_terminals_add_is_removed() -> None:
    """Colours, titles, a byte order mark, no-break blanks and carriage returns are no text."""
    text = "\ufeff\x1b]0;root@n1\x07\x1b[01;32mmlx5_0\x1b[0m\xa0port\r\n\x1b(B 50%\r100%\r\r\n"
    assert captures(text) == (
        Capture(None, (Line(1, "mlx5_0 port"), Line(2, " 50%"), Line(2, "100%"), Line(3, ""))),
    )
