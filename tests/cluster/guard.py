"""`python -m tests.cluster.guard DIRECTORY`: wait until standard input ends, remove the cluster."""

from __future__ import annotations

import sys
from pathlib import Path

from tests.cluster.lifetime import remove

if __name__ == "__main__":
    sys.stdin.buffer.read()
    remove(Path(sys.argv[1]))
