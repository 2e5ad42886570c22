"""The lines of /readyz are read as `serve` writes them."""

from __future__ import annotations

import pytest

from webhook.text.readiness import ReadinessCheck, read_readiness, readiness_text

CHECKS = (
    ReadinessCheck("configuration", True, "load 1, config 0123 (a: b)"),
    ReadinessCheck("certificate", False, "not read yet"),
)
TEXT = "[+] configuration: load 1, config 0123 (a: b)\n[-] certificate: not read yet\nnot ready\n"


def test_the_text() -> None:
    """A line for each check, and the result."""
    assert readiness_text(CHECKS, ready=False) == TEXT
    assert readiness_text(CHECKS[:1], ready=True).endswith("\nready\n")


def test_it_is_read() -> None:
    """The last line is no check."""
    assert read_readiness(TEXT) == CHECKS


@pytest.mark.parametrize("text", ["", "ready\n", '{"kind": "Status"}', "[ ] a: b", "x [+] a: b"])
def test_other_texts(text: str) -> None:
    """They have no checks."""
    assert read_readiness(text) == ()
