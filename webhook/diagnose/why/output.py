"""An explanation for programs: stable, and described by `why.schema.json`.

Keys may be added, but are never renamed; so is every code.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from webhook.diagnose.codes import Explained
from webhook.diagnose.why.explanation import Explanation, Sentence

_SCHEMA = Path(__file__).with_name("why.schema.json")


def why_form(explanations: Iterable[Explanation]) -> dict[str, Any]:
    """Return explanations as plain JSON values."""
    return {"pods": [_pod(one) for one in explanations]}


def _pod(explanation: Explanation) -> dict[str, Any]:
    return {
        "namespace": explanation.namespace,
        "name": explanation.pod,
        "owners": list(explanation.owners),
        "rdma": explanation.rdma,
        "well": explanation.well,
        "answer": _sentence_form(explanation.answer),
        "chapters": [
            {"name": chapter.name, "sentences": [_sentence_form(one) for one in chapter.sentences]}
            for chapter in explanation.chapters
        ],
    }


def _sentence_form(sentence: Sentence) -> dict[str, str]:
    return {
        "code": sentence.code,
        "level": sentence.level,
        "text": sentence.text,
        "remedy": sentence.remedy,
    }


def code_form(found: Explained) -> dict[str, Any]:
    """Return what a code means as plain JSON values."""
    return {
        "code": found.code,
        "rdma": found.rdma,
        "meaning": found.meaning,
        "rows": [{"part": row.part, "when": row.when} for row in found.rows],
        "remedy": found.remedy,
    }


def why_schema() -> str:
    """Return the JSON Schema (draft 2020-12) of both forms."""
    return _SCHEMA.read_text(encoding="utf-8")
