"""Cases that broke a law, stored as files: from then on, each is a regression test.

{"target": "mutate", "law": "no_defect_of_ours", "where": …, "message": …,
 "parts": {"fabrics": "…", "cluster": null, "body": {"text": "…"}}}
"""

from __future__ import annotations

import base64
import hashlib
import json
from pathlib import Path
from typing import Any

from tests.fuzz.check import TARGETS, Violation
from tests.fuzz.target import Parts, Target

FOLDER = Path(__file__).parent / "found"


def keep(target: Target, parts: Parts, violation: Violation, folder: Path = FOLDER) -> Path:
    """Write a case to a file, and return its path; equal cases get the same name."""
    content = {
        "target": target.name,
        "law": violation.law,
        "where": violation.place,
        "message": violation.message[:500],
        "parts": {name: _packed(value) for name, value in parts.items()},
    }
    written = json.dumps(content, indent=1) + "\n"
    digest = hashlib.sha256(json.dumps(content["parts"]).encode()).hexdigest()[:8]
    path = folder / f"{target.name}-{violation.law.replace('_', '-')}-{digest}.json"
    folder.mkdir(parents=True, exist_ok=True)
    path.write_text(written)
    return path


def stored_case(path: Path) -> tuple[Target, Parts]:
    """Read a file written by `keep`."""
    content = json.loads(path.read_text())
    parts = {name: _unpacked(value) for name, value in content["parts"].items()}
    return TARGETS[content["target"]], parts


def _packed(value: Any) -> Any:
    if value.__class__ is not bytes:
        return value
    try:
        return {"text": value.decode()}
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(value).decode()}


def _unpacked(value: Any) -> Any:
    if value.__class__ is dict and value.keys() == {"text"}:
        return value["text"].encode()
    if value.__class__ is dict and value.keys() == {"base64"}:
        return base64.b64decode(value["base64"])
    return value
