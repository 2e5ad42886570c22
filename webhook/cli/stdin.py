"""Read standard input, where `-` stands for it."""

from __future__ import annotations

import sys
from io import BufferedReader
from typing import cast


def read_stdin(most: int) -> bytes:
    """Read to the end, but no more than so many bytes.

    Piece by piece: a single read goes on where Ctrl-C came between two of its system calls.
    """
    stream = cast("BufferedReader", sys.stdin.buffer)
    pieces: list[bytes] = []
    while most > 0 and (piece := stream.read1(most)):
        pieces.append(piece)
        most -= len(piece)
    return b"".join(pieces)
