"""Start a browser, and servers of the page."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

from playwright.sync_api import Browser, sync_playwright

from tests.integration.programs import lacking

_BROWSERS = ("chromium", "google-chrome", "chromium-browser")


class PageServer(NamedTuple):
    """A running `rdma-webhook preview --page`."""

    address: str  #: `http://127.0.0.1:PORT/`
    process: subprocess.Popen[str]

    def stop(self) -> None:
        """End the process, and wait for its end."""
        self.process.terminate()
        self.process.wait()


@contextmanager
def serve_page(*arguments: object) -> Iterator[PageServer]:
    """Serve the page while the block runs."""
    command = [sys.executable, "-m", "webhook", "preview", "--page", *map(str, arguments)]
    with subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        words = (word for line in process.stdout for word in line.split())
        server = PageServer(next(word for word in words if word.startswith("http://")), process)
        try:
            yield server
        finally:
            server.stop()


@contextmanager
def running_browser() -> Iterator[Browser]:
    """Run Debian's chromium; if it is missing, fail with CI=true, else skip the test."""
    path = next(filter(None, map(shutil.which, _BROWSERS)), None)
    if path is None:
        lacking("no chromium here (on Debian: apt-get install chromium)")
    root = ("--no-sandbox",) if os.geteuid() == 0 else ()
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=["--disable-gpu", *root])
        try:
            yield browser
        finally:
            browser.close()
