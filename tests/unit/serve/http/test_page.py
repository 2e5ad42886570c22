"""The page: its files, their headers, and who gets it instead of the usage."""

from __future__ import annotations

from html.parser import HTMLParser
from pathlib import Path

import pytest

from tests.unit.serve.client import Answer, Lines, call
from webhook.serve.http import page
from webhook.serve.http.preview import PreviewApp
from webhook.serve.http.query import prefers_html
from webhook.serve.metrics import Metrics
from webhook.serve.state import State
from webhook.serve.worker_supervisor import WorkerSupervisor
from webhook.text.web_page import STYLE_SHEET

FOLDER = Path(page.__file__).parent
#: Each address of the page, with the file there and its media type.
FILES = {
    "/": (FOLDER / "index.html", "text/html; charset=utf-8"),
    "/fabrics.js": (FOLDER / "fabrics.js", "text/javascript; charset=utf-8"),
    "/input.js": (FOLDER / "input.js", "text/javascript; charset=utf-8"),
    "/outcomes.js": (FOLDER / "outcomes.js", "text/javascript; charset=utf-8"),
    "/page.css": (FOLDER / "page.css", "text/css; charset=utf-8"),
    "/page.js": (FOLDER / "page.js", "text/javascript; charset=utf-8"),
    "/rows.js": (FOLDER / "rows.js", "text/javascript; charset=utf-8"),
    "/web_page.css": (STYLE_SHEET, "text/css; charset=utf-8"),
}
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
    "require-trusted-types-for 'script'"
)
#: What Firefox and curl send.
BROWSER = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"
CURL = "*/*"


def get(path: str, method: str = "GET", **headers: str) -> Answer:
    """Request an address of a server without a configuration."""
    shared = State(), Metrics(), Lines().log
    app = PreviewApp(*shared, WorkerSupervisor(shared[1], shared[2], seconds=1.0))
    pairs = [(name.replace("_", "-").encode(), text.encode()) for name, text in headers.items()]
    return call(app, method, path, headers=pairs)


def test_the_folder_has_these_files_and_no_others() -> None:
    """Whatever is in the folder besides Python is part of the page, and no file is missing."""
    files = {file for file in FOLDER.iterdir() if file.suffix != ".py" and file.is_file()}
    assert {*files, STYLE_SHEET} == {file for file, _ in FILES.values()}
    assert set(page.page_files()) == set(FILES)


@pytest.mark.parametrize("path", FILES)
def test_each_file_is_served(path: str) -> None:
    """The answer is the file, byte for byte, with a media type that a browser requires."""
    file, media_type = FILES[path]
    answer = get(path, accept=CURL)
    assert answer.status == 200
    assert answer.body == file.read_bytes()
    assert answer.headers["content-type"] == media_type


@pytest.mark.parametrize(
    "path",
    [
        *("/index.html", "/page", "/page/", "/page/page.js", "/page.js/", "//page.js"),
        *("/page.py", "/__init__.py", "/page.css.map", "/favicon.ico", "/../page.js", "/%70age.js"),
    ],
)
def test_nothing_else_is_served(path: str) -> None:
    """Other paths, also of Python files in the same folder, do not exist."""
    answer = get(path, accept=BROWSER)
    assert answer.status == 404
    assert answer.headers["content-type"] == "text/plain; charset=utf-8"


def test_another_folder_can_be_served(tmp_path: Path) -> None:
    """Only the three types of file are taken, with any name, and the shared style sheet."""
    for name in ("index.html", "more.js", "notes.txt", "__init__.py", "page.css"):
        (tmp_path / name).write_text(name)
    assert set(page.page_files(tmp_path)) == {"/", "/more.js", "/page.css", "/web_page.css"}


@pytest.mark.parametrize("path", FILES)
def test_files_are_read_once(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """No request opens a file: a slow disk would delay every other request."""
    shared = State(), Metrics(), Lines().log
    app = PreviewApp(*shared, WorkerSupervisor(shared[1], shared[2], seconds=1.0))
    monkeypatch.setattr(Path, "read_bytes", None)
    monkeypatch.setattr("builtins.open", None)
    assert call(app, "GET", path).status == 200


@pytest.mark.parametrize("path", FILES)
@pytest.mark.parametrize("changed", [True, False])
def test_a_file_has_these_headers(path: str, *, changed: bool) -> None:
    """They forbid the page whatever it does not need, also if the browser has it already."""
    tag = "" if changed else get(path).headers["etag"]
    answer = get(path, if_none_match=tag)
    assert answer.status == (200 if changed else 304)
    headers = dict(answer.headers)
    assert headers.pop("etag")
    for name in ("content-type", "content-length"):
        assert (headers.pop(name, None) is not None) is changed
    assert headers == {
        "content-security-policy": POLICY,
        "x-content-type-options": "nosniff",
        "referrer-policy": "no-referrer",
        "cross-origin-opener-policy": "same-origin",
        "cross-origin-resource-policy": "same-origin",
        "cache-control": "no-cache",
    }


@pytest.mark.parametrize(
    ("written", "status"),
    [
        ("{}", 304),
        ("W/{}", 304),
        ('"other", {}', 304),
        ('"other",W/{} , "third"', 304),
        ("*", 304),
        ('"other"', 200),
        ('"*"', 200),
        ("{}x", 200),
        ("", 200),
        (",", 200),
    ],
)
def test_an_unchanged_file_is_not_sent(written: str, status: int) -> None:
    """A browser asks whether its copy is current, and gets no body if it is."""
    whole = get("/page.css")
    answer = get("/page.css", if_none_match=written.format(whole.headers["etag"]))
    assert (answer.status, answer.body) == (status, b"" if status == 304 else whole.body)
    assert answer.headers["etag"] == whole.headers["etag"]


def test_a_tag_belongs_to_its_content(tmp_path: Path) -> None:
    """Another content has another tag, and the tag is quoted (RFC 9110, 8.8.3)."""
    tags = {}
    for text in ("a", "b"):
        (tmp_path / "page.css").write_text(text)
        tags[text] = page.PageFile(tmp_path / "page.css").tag
    assert tags["a"] != tags["b"]
    assert tags["a"][0] == tags["a"][-1] == '"'


@pytest.mark.parametrize("method", ["GET", "HEAD"])
@pytest.mark.parametrize(
    ("accept", "is_page"),
    [
        (BROWSER, True),
        ("text/html", True),
        ("text/html;q=0.5, text/plain;q=0.4", True),
        (CURL, False),
        ("", False),
        ("text/plain", False),
        ("text/html, text/plain", False),
        ("text/html;q=0.4, text/plain;q=0.5", False),
        ("text/html;q=0", False),
        ("application/json", False),
    ],
)
def test_a_browser_gets_the_page_instead_of_the_usage(
    method: str, accept: str, *, is_page: bool
) -> None:
    """The page is for callers who prefer HTML; curl and scripts get the usage as before."""
    answer = get("/preview", method, accept=accept)
    assert answer.status == 200
    assert answer.headers["vary"] == "accept"
    media_type = "text/html" if is_page else "text/plain"
    assert answer.headers["content-type"] == f"{media_type}; charset=utf-8"
    assert ("content-security-policy" in answer.headers) is is_page
    assert (answer.body == (FOLDER / "index.html").read_bytes()) is is_page
    assert prefers_html(accept) is is_page


@pytest.mark.parametrize("path", [*FILES, "/preview"])
def test_a_file_cannot_be_written(path: str) -> None:
    """Only GET and HEAD are allowed; a POST of the page goes to /preview."""
    assert get(path, "HEAD").status == 200
    for method in ("PUT", "DELETE", "OPTIONS"):
        assert get(path, method).status == 405
    assert get(path, "POST").status == (503 if path == "/preview" else 405)


@pytest.mark.parametrize(
    ("method", "path"),
    [("GET", "/preview"), ("POST", "/preview"), ("GET", "/fabrics"), ("GET", "/x"), ("PUT", "/")],
)
def test_no_answer_is_sniffed(method: str, path: str) -> None:
    """An answer may hold words of its caller: no browser may take it for markup."""
    assert get(path, method).headers["x-content-type-options"] == "nosniff"


class _Addresses(HTMLParser):
    """Collects the addresses in a page."""

    def __init__(self) -> None:
        super().__init__()
        self.read: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Collect the addresses of an element that is loaded with the page."""
        names = ("src", "href") if tag == "link" else ("src",)
        self.read += [address or "" for name, address in attrs if name in names]


def test_the_page_loads_its_own_files_by_relative_addresses() -> None:
    """So it works at /, at /preview, and below any path of a proxy."""
    parser = _Addresses()
    parser.feed((FOLDER / "index.html").read_text("utf-8"))
    own = {"web_page.css", "page.css", "page.js"}
    assert own <= set(parser.read) <= {*own, "data:,"}
