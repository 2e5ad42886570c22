"""Write the pictures of the docs, and one of each scene, width and scheme: `make screenshots`."""

from __future__ import annotations

import sys
from pathlib import Path

from tests.browser.inputs import FABRICS
from tests.browser.page_server import running_browser, serve_page
from tests.browser.pictures import moving, still
from tests.browser.scenes import SCENES, SCHEMES, WIDTHS
from tests.browser.visit import Visit

_ROOT = Path(__file__).parents[2]
_FOLDER = _ROOT / ".cache" / "screenshots"
_DOCS_FOLDER = _ROOT / "docs" / "images"


def main() -> None:
    """Write `docs/images/page.*`, and `.cache/screenshots/SCENE-WIDTH-SCHEME.png`."""
    _FOLDER.mkdir(parents=True, exist_ok=True)
    _DOCS_FOLDER.mkdir(exist_ok=True)
    with running_browser() as browser, serve_page("-c", FABRICS) as server:
        (_DOCS_FOLDER / "page.png").write_bytes(still(browser, server.address))
        (_DOCS_FOLDER / "page.webp").write_bytes(moving(browser, server.address))
        for name, show in SCENES.items():
            for width in WIDTHS:
                for scheme in SCHEMES:
                    with Visit.to(browser, server.address, width=width, scheme=scheme) as visit:
                        show(visit)
                        file = _FOLDER / f"{name}-{width}-{scheme}.png"
                        visit.page.screenshot(path=file, full_page=True)
    sys.stdout.write(f"{_FOLDER}\n")


if __name__ == "__main__":
    main()
