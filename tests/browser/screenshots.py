"""Write a picture of each scene in each width and color scheme: `make screenshots`."""

from __future__ import annotations

import sys
from pathlib import Path

from tests.browser.inputs import FABRICS
from tests.browser.page_server import running_browser, serve_page
from tests.browser.scenes import SCENES, SCHEMES, WIDTHS
from tests.browser.visit import Visit

_FOLDER = Path(__file__).parents[2] / ".cache" / "screenshots"


def main() -> None:
    """Write `.cache/screenshots/SCENE-WIDTH-SCHEME.png`, of the whole page."""
    _FOLDER.mkdir(parents=True, exist_ok=True)
    with running_browser() as browser, serve_page("-c", FABRICS) as server:
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
