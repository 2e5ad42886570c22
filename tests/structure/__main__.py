"""Print the figures of the structure of the code; run it in the root of the repository."""

from __future__ import annotations

import sys
from pathlib import Path

from tests.structure.figures import border_crossings, reads_by_path


def main() -> None:
    """Print a line for each figure."""
    reads = reads_by_path(Path("webhook"))
    rooms = ", ".join(f"{room} {count}" for room, count in reads.most_common())
    sys.stdout.write(f"reads by path: {reads.total()} ({rooms})\n")
    sys.stdout.write(f"border crossings of decide: {len(border_crossings(Path('webhook')))}\n")


if __name__ == "__main__":
    main()
