"""Text put behind words of a shell script; every other character stays."""

from __future__ import annotations

from collections.abc import Iterable


def insert_after(script: str, ends: Iterable[int], text: str) -> str:
    """Insert `text` at the offsets `ends`, in time linear in the script and what is inserted.

    A blank follows where a redirection does: in `mpirun -np 2>log` the 2 is a descriptor
    (POSIX.1-2024, XCU 2.7).
    """
    parts: list[str] = []
    before = 0
    for end in sorted(ends):
        blank = " " if script[end : end + 1] in ("<", ">") else ""
        parts += (script[before:end], text, blank)
        before = end
    return "".join((*parts, script[before:]))
