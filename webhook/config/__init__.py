"""The fabrics file and the facts file: read, checked, compiled, watched; pydantic stops here."""

from __future__ import annotations

from pathlib import Path

#: Two InfiniBand fabrics, for a first look at what the webhook does.
EXAMPLE = Path(__file__).parent / "examples" / "lab-two-infiniband.yaml"
