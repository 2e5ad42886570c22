"""The page in a real browser, served by `rdma-webhook preview --page`.

A test fails if the page logs an error, violates its policy, or sends a request to another origin.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser

from tests.browser.inputs import FABRICS
from tests.browser.page_server import running_browser, serve_page
from tests.browser.visit import Visit


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """Start Debian's chromium for all tests of a process."""
    with running_browser() as browser:
        yield browser


@pytest.fixture(scope="session")
def address() -> Iterator[str]:
    """Serve the page with fabrics for all tests of a process, and return its address."""
    with serve_page("-c", FABRICS) as server:
        yield server.address


@pytest.fixture
def visit(browser: Browser, address: str) -> Iterator[Visit]:
    """Open the page in a new context, light and 1280 pixels wide."""
    with Visit.to(browser, address) as visit:
        yield visit
