"""Insert text after words of a shell script without changing any other character."""

from __future__ import annotations

from collections.abc import Iterable


def insert_after(script: str, ends: Iterable[int], text: str) -> str:
    """Insert `text` at the offsets `ends`, in time linear in the length of the result.

    If a redirection follows, add a blank: in `mpirun -np 2>log` the 2 would be a descriptor
    (POSIX.1-2024, XCU 2.7).
    """
    parts: list[str] = []
    before = 0
    for end in sorted(ends):
        blank = " " if script[end : end + 1] in ("<", ">") else ""
        parts += (script[before:end], text, blank)
        before = end
    return "".join((*parts, script[before:]))
