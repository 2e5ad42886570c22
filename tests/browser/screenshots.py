"""Write the pictures of the docs, and one of each scene, width and scheme: `make screenshots`."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

from playwright.sync_api import Browser

from tests.browser.documents import DOCUMENTS
from tests.browser.inputs import FABRICS
from tests.browser.page_server import running_browser, serve_page
from tests.browser.pictures import moving, still
from tests.browser.scenes import SCENES, SCHEMES, WIDTHS
from tests.browser.visit import Visit

_ROOT = Path(__file__).parents[2]
_FOLDER = _ROOT / ".cache" / "screenshots"
_DOCS_FOLDER = _ROOT / "docs" / "images"


def main() -> None:
    """Write `docs/images/page.*`, and `.cache/screenshots/NAME-WIDTH-SCHEME.png`.

    A name is that of a scene of the page, or of a document.
    """
    _FOLDER.mkdir(parents=True, exist_ok=True)
    _DOCS_FOLDER.mkdir(exist_ok=True)
    with running_browser() as browser, serve_page("-c", FABRICS) as server:
        (_DOCS_FOLDER / "page.png").write_bytes(still(browser, server.address))
        (_DOCS_FOLDER / "page.webp").write_bytes(moving(browser, server.address))
        for name, show in SCENES.items():
            _take(browser, server.address, name, show)
        for name, write in DOCUMENTS.items():
            document = _FOLDER / f"{name}.html"
            document.write_text(write(), encoding="utf-8")
            _take(browser, document.as_uri(), name)
    sys.stdout.write(f"{_FOLDER}\n")


def _take(
    browser: Browser, address: str, name: str, show: Callable[[Visit], None] | None = None
) -> None:
    """Take a picture in each width and scheme."""
    for width in WIDTHS:
        for scheme in SCHEMES:
            with Visit.to(browser, address, width=width, scheme=scheme) as visit:
                if show is not None:
                    show(visit)
                file = _FOLDER / f"{name}-{width}-{scheme}.png"
                visit.page.screenshot(path=file, full_page=True)


if __name__ == "__main__":
    main()
