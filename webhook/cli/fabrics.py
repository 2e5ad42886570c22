"""Which fabrics file a command reads."""

from __future__ import annotations

import os
from pathlib import Path

from webhook.cli.parser import CONFIG_VARIABLE


def configured(given: str | None) -> Path | None:
    """Return the file that the options or else the environment name, None where neither does."""
    name = given or os.environ.get(CONFIG_VARIABLE)
    return Path(name) if name else None
