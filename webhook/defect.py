"""Describe a defect by the type of its exception and the lines of code it passed through.

The exception's message is left out, since it may quote a pod.
"""

from __future__ import annotations

import traceback
from typing import Any


def defect(error: BaseException) -> dict[str, Any]:
    """Describe an exception by its type and the lines it passed through, innermost last."""
    frames = traceback.extract_tb(error.__traceback__)
    return {
        "error": type(error).__name__,
        "trace": [
            f"{one.filename.rpartition('/')[2]}:{one.lineno} {one.name}" for one in frames[-12:]
        ],
    }
