from __future__ import annotations

import pytest

from webhook.app.http.negotiate import negotiate


@pytest.mark.parametrize(
    ("accept", "name"),
    [
        ("", "json"),
        ("*/*", "json"),
        (", ,", "json"),
        ("application/*", "json"),
        ("application/json", "json"),
        ("application/yaml", "yaml"),
        ("text/yaml", "yaml"),
        ("application/x-yaml;charset=utf-8", "yaml"),
        ("text/plain", "text"),
        ("TEXT/PLAIN", "text"),
        ("text/html, text/plain;q=0.8, */*;q=0.1", "text"),
        ("application/json;q=0.5, application/yaml", "yaml"),
        ("application/json;q=0, */*", "yaml"),
        ("text/*", "yaml"),
        ("text/plain;q=1, application/json;q=1", "json"),
        ("text/html", "text"),
        ("image/png", None),
        ("*/*;q=0", None),
        ("text/plain;q=x", None),
        ("nonsense", None),
    ],
)
def test_negotiate(accept: str, name: str | None) -> None:
    """RFC 9110, 12.5.1: specific before general, quality before order, JSON among equals."""
    found = negotiate(accept)
    assert (found and found.name) == name
