"""The test of nccl-tests that printed a table, where no line names it.

Only nccl-tests 2.17 and newer print the name; a batch job's log rarely has the command. But the
columns differ (NVIDIA/nccl-tests, src/*.cu): `root` is -1 without a root, `redop` is `none`
without a reduction, and `count` is that of a single rank where each rank sends or receives a part.
Only tests that work in place check those results: N/A stands for the others. The bus bandwidth of
all_reduce alone exceeds its algorithm bandwidth (doc/PERFORMANCE.md there).
"""

from __future__ import annotations

import re
from collections.abc import Sequence

#: The columns with the number of wrong elements; older versions print the largest error.
CHECKED_COLUMNS = ("#wrong", "error")
#: Bytes of an element.
_WIDTHS = {
    **dict.fromkeys(("int8", "uint8", "f8e4m3", "f8e5m2"), 1),
    **dict.fromkeys(("half", "bfloat16"), 2),
    **dict.fromkeys(("int32", "uint32", "float"), 4),
    **dict.fromkeys(("int64", "uint64", "double"), 8),
}
_UNCHECKED = "N/A"
_COUNT = re.compile(r"\d{1,18}")


def test_of_row(columns: Sequence[str], words: Sequence[str]) -> str | None:
    """Return the test that printed a row with these words, such as "all_reduce_perf".

    None if several tests print such a row, or if it is no row of nccl-tests.
    """
    # The first of two columns with the same name counts.
    cells = dict(reversed(list(zip(columns, words, strict=False))))
    parts = _parts(cells)
    if parts is None:
        return None
    reduces = cells.get("redop", "none") != "none"
    if cells.get("root", "-1") != "-1":
        return _with_root(parts, reduces)
    checked = [
        word != _UNCHECKED
        for name, word in zip(columns, words, strict=False)
        if name in CHECKED_COLUMNS
    ]
    in_place = checked[1] if len(checked) > 1 and checked[0] else None
    if parts == 1:
        return _of_whole_buffers(cells, in_place) if reduces else None
    if reduces:
        return "reduce_scatter_perf"
    return {True: "all_gather_perf", False: "alltoall_perf", None: None}[in_place]


def _with_root(parts: int, reduces: bool) -> str | None:
    if parts != 1:
        return None
    return "reduce_perf" if reduces else "broadcast_perf"


def _of_whole_buffers(cells: dict[str, str], in_place: bool | None) -> str | None:
    """Distinguish all_reduce from sendrecv, which prints a reduction that it does not do."""
    try:
        exceeds = float(cells["busbw"]) > 1.05 * float(cells["algbw"])
    except (KeyError, ValueError):
        return None
    if exceeds or in_place:
        return "all_reduce_perf"
    return "sendrecv_perf" if in_place is False else None


def _parts(cells: dict[str, str]) -> int | None:
    """Return how many times a rank's elements fit into the size of the row; None if unevenly."""
    size, count = cells.get("size", ""), cells.get("count", "")
    width = _WIDTHS.get(cells.get("type", ""))
    if width is None or not _COUNT.fullmatch(size) or not _COUNT.fullmatch(count):
        return None
    parts, remainder = divmod(int(size), int(count) * width or 1)
    return parts if parts and not remainder and int(count) else None
