"""A visit to the page, which records what no visit may do."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Literal, Self

from playwright.sync_api import Browser, ConsoleMessage, Locator, Page, Request, expect

from tests.waiting import PATIENCE

Scheme = Literal["light", "dark"]
expect.set_options(timeout=PATIENCE * 1000)

#: Reports of the policy arrive as events; they are also errors of the console.
_RECORD_VIOLATIONS = """
window.violations = [];
document.addEventListener("securitypolicyviolation", (event) => {
  window.violations.push(`${event.violatedDirective}: ${event.blockedURI}`);
});
"""
#: The browser logs each answer with an error status, and requests that got no answer; the page
#: shows these.
_ANSWERS = "Failed to load resource: "


class Visit:
    """The page in a tab of its own, and the faults seen there."""

    def __init__(self, page: Page, address: str) -> None:
        self.page = page
        self.address = address
        #: The paths and queries of the requests so far.
        self.requests: list[str] = []
        self._faults: list[str] = []
        page.on("console", self._check_console)
        page.on("pageerror", lambda error: self._faults.append(f"exception: {error}"))
        page.on("request", self._check_request)
        page.add_init_script(_RECORD_VIOLATIONS)

    @classmethod
    @contextmanager
    def to(
        cls,
        browser: Browser,
        address: str,
        *,
        width: int = 1280,
        height: int = 900,
        scheme: Scheme = "light",
    ) -> Iterator[Self]:
        """Visit an address while the block runs; then fail if there were faults."""
        context = browser.new_context(
            viewport={"width": width, "height": height},
            color_scheme=scheme,
            reduced_motion="reduce",
            permissions=["clipboard-read", "clipboard-write"],
        )
        try:
            context.set_default_timeout(PATIENCE * 1000)
            visit = cls(context.new_page(), address.partition("#")[0])
            visit.page.goto(address)
            yield visit
            visit.check()
        finally:
            context.close()

    def _check_console(self, message: ConsoleMessage) -> None:
        if message.type in ("error", "warning") and not message.text.startswith(_ANSWERS):
            self._faults.append(f"{message.type}: {message.text}")

    def _check_request(self, request: Request) -> None:
        if not request.url.startswith((self.address, "blob:")):
            self._faults.append(f"request to {request.url}")
        self.requests.append(request.url.removeprefix(self.address))

    def check(self) -> None:
        """Fail if the page did what no visit may do."""
        assert [*self._faults, *self.page.evaluate("window.violations")] == []

    # What people see and use.

    @property
    def result(self) -> Locator:
        """The part of the page with the result."""
        return self.page.get_by_role("region", name="Result")

    @property
    def headline(self) -> Locator:
        """The verdict in a few words, or the name of a problem."""
        return self.result.locator(".card h2")

    @property
    def text_box(self) -> Locator:
        """The box for the manifest."""
        return self.page.get_by_label("Manifest")

    def button(self, name: str) -> Locator:
        """Return the button with this name."""
        return self.page.get_by_role("button", name=name, exact=True)

    def request(self, text: str) -> None:
        """Enter a text, and press the button."""
        self.text_box.fill(text)
        self.button("Preview").click()

    def preview(self, text: str) -> None:
        """Request a preview, and wait until the result of an earlier text is replaced."""
        self.request(text)
        expect(self.page.locator("#result")).to_have_attribute("aria-busy", "false")

    def paste(self, text: str) -> None:
        """Replace the text by a long one, which `fill` would enter much more slowly."""
        self.page.evaluate("text => navigator.clipboard.writeText(text)", text)
        self.text_box.focus()
        self.page.keyboard.press("Control+A")
        self.page.keyboard.press("Control+V")

    def section(self, title: str) -> Locator:
        """Return the section of the result with this title."""
        return self.result.locator("section", has=self.page.get_by_role("heading", name=title))
