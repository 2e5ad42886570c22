"""docs/from-nodes-to-fabric.md shows discover's output for the sites in this folder."""

from __future__ import annotations

import os
import re
from pathlib import Path

HERE = Path(__file__).parent
PAGE = HERE.parents[2] / "docs" / "from-nodes-to-fabric.md"
_QUOTED = re.compile(r"(<!-- output of (\S+) -->\n).*?(<!-- end of output -->)", re.DOTALL)


def test_the_page_quotes_the_output() -> None:
    """The quotes are the files that the other tests compare with what comes out."""
    page = PAGE.read_text(encoding="utf-8")
    fresh = _QUOTED.sub(_quoted, page)
    if os.environ.get("UPDATE_GOLDEN"):
        PAGE.write_text(fresh, encoding="utf-8")
    assert PAGE.read_text(encoding="utf-8") == fresh, f"{PAGE} is stale: run `make golden`"
    assert len(_QUOTED.findall(fresh)) == 2


def _quoted(match: re.Match[str]) -> str:
    language = "yaml" if match[2].endswith(".yaml") else "text"
    text = (HERE / match[2]).read_text(encoding="utf-8")
    return f"{match[1]}\n```{language}\n{text}```\n\n{match[3]}"
