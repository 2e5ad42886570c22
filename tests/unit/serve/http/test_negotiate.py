from __future__ import annotations

import pytest

from webhook.errors import RequestError
from webhook.preview.fabrics.record import FABRICS_FORMATS
from webhook.preview.formats import HTTP_FORMATS
from webhook.serve.http.query import MAX_ACCEPT_LENGTH, MAX_RANGES, negotiate


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
    ],
)
def test_negotiate(accept: str, name: str) -> None:
    """RFC 9110, 12.5.1: specific before general, quality before order, JSON among equals."""
    assert negotiate(accept, HTTP_FORMATS).name == name


@pytest.mark.parametrize(
    ("accept", "name"),
    [
        ("text/plain".ljust(MAX_ACCEPT_LENGTH), "text"),
        ("text/plain".ljust(MAX_ACCEPT_LENGTH + 1), "json"),
        ("text/plain" + ",a" * (MAX_RANGES - 1), "text"),
        ("text/plain" + ",a" * MAX_RANGES, "json"),
    ],
    ids=["longest", "too long", "most ranges", "too many ranges"],
)
def test_a_header_longer_than_any_browsers_is_not_read(accept: str, name: str) -> None:
    """Nobody waits for a header: the work for it is limited, and any type will do."""
    assert negotiate(accept, HTTP_FORMATS).name == name


@pytest.mark.parametrize("accept", ["image/png", "*/*;q=0", "text/plain;q=x", "nonsense"])
def test_other_types_are_refused(accept: str) -> None:
    """The answer names the types; a format without a media type is requested by its name alone."""
    with pytest.raises(RequestError) as caught:
        negotiate(accept, FABRICS_FORMATS)
    assert (caught.value.status, str(caught.value)) == (
        406,
        "accept: use one of application/json, text/plain",
    )
