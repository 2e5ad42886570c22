"""The page on which people paste a manifest and read what the webhook would do with it.

This folder has its files, `index.html`, `page.css`, `page.js` and what that imports; each is
served below `/`, the index at `/` itself, and so is the style sheet that the page shares with the
documents of the command line. They are read once, at the start, and send nothing but the text to
`/preview`.
"""

from __future__ import annotations

from hashlib import sha256
from pathlib import Path

from fastapi import Request, Response

from webhook.text.web_page import STYLE_SHEET

_FOLDER = Path(__file__).parent
_INDEX = "index.html"
_MEDIA_TYPES = {".css": "text/css", ".html": "text/html", ".js": "text/javascript"}

#: The page may load its own script and style, and may ask its own server. Nothing else: no inline
#: script, no other site, no form, no frame around it, and no string that becomes markup.
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
    "require-trusted-types-for 'script'"
)
#: The headers of each file, and of an answer that it has not changed.
HEADERS = {
    "content-security-policy": POLICY,
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    # A browser asks each time whether the file has changed: an upgrade takes effect at once.
    "cache-control": "no-cache",
}


class PageFile:
    """A file of the page, in memory, with its entity tag."""

    def __init__(self, file: Path) -> None:
        self._body = file.read_bytes()
        self._media_type = _MEDIA_TYPES[file.suffix]
        #: The entity tag: the same text has the same tag in all replicas and versions.
        self.tag = f'"{sha256(self._body).hexdigest()}"'
        self._headers = {**HEADERS, "etag": self.tag}

    async def answer(self, request: Request) -> Response:
        """Return the file, or 304 if `If-None-Match` names its tag."""
        if _matches(request.headers.get("if-none-match", ""), self.tag):
            return Response(status_code=304, headers=self._headers)
        return Response(self._body, media_type=self._media_type, headers=self._headers)


def page_files(folder: Path = _FOLDER) -> dict[str, PageFile]:
    """Return the files of the page by the path of their address; "/" is the index."""
    files = (file for file in (STYLE_SHEET, *folder.iterdir()) if file.suffix in _MEDIA_TYPES)
    return {_path(file.name): PageFile(file) for file in files}


def _path(name: str) -> str:
    return "/" if name == _INDEX else f"/{name}"


def _matches(if_none_match: str, tag: str) -> bool:
    """Return whether the header names this tag (RFC 9110, 13.1.2: weakly, or any by `*`)."""
    tags = [written.strip().removeprefix("W/") for written in if_none_match.split(",")]
    return tag in tags or tags == ["*"]
