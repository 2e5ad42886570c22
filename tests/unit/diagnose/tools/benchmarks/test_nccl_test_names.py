"""Tests of the test of nccl-tests that printed a table without a name."""

from __future__ import annotations

import pytest

from webhook.diagnose.tools.benchmarks.nccl_test_names import test_of_row as name_of

FIGURES = ("time", "algbw", "busbw")
NEW = [*("size", "count", "type", "redop", "root"), *(*FIGURES, "#wrong") * 2]
OLD = [*("size", "count", "type", "redop"), *(*FIGURES, "error") * 2]
WITHOUT_REDUCTION = [*("size", "count", "type"), *(*FIGURES, "error") * 2]
#: 16 ranks of 4-byte elements: a whole buffer has 4096 of them, a part has 256.
ALL_REDUCE = "16384 4096 float sum -1 9.1 100.0 187.5 0 9.1 100.0 187.5 0"


@pytest.mark.parametrize(
    ("row", "name"),
    [
        (ALL_REDUCE, "all_reduce_perf"),
        (ALL_REDUCE.replace(" 0", " N/A"), "all_reduce_perf"),
        (ALL_REDUCE.replace("float", "double"), None),
        ("32768 4096 double sum -1 9.1 100.0 187.5 0 9.1 100.0 187.5 0", "all_reduce_perf"),
        ("8192 4096 half sum -1 9.1 100.0 187.5 0 9.1 100.0 187.5 0", "all_reduce_perf"),
        ("4096 4096 int8 sum -1 9.1 100.0 187.5 0 9.1 100.0 187.5 0", "all_reduce_perf"),
        ("16384 4096 float sum -1 9.1 23.0 23.0 0 9.1 23.0 23.0 0", "all_reduce_perf"),
        ("16384 4096 float sum -1 9.1 23.0 23.0 0 9.1 23.0 23.0 N/A", "sendrecv_perf"),
        ("16384 4096 float sum -1 9.1 23.0 23.0 N/A 9.1 23.0 23.0 N/A", None),
        ("16384 4096 float sum -1 9.1 100.0 105.0 N/A 9.1 100.0 105.0 N/A", None),
        ("16384 4096 float sum -1 9.1 30.0 40.0 N/A 9.1 30.0 40.0 N/A", "all_reduce_perf"),
        ("16384 4096 float sum -1 9.1 23.0 23.0 0", None),
        ("16384 4096 float sum -1 9.1 x 23.0 0 9.1 23.0 23.0 0", None),
        ("16384 256 float sum -1 9.1 100.0 93.7 0 9.1 100.0 93.7 0", "reduce_scatter_perf"),
        ("16384 256 float none -1 9.1 100.0 93.7 0 9.1 100.0 93.7 0", "all_gather_perf"),
        ("16384 256 float none -1 9.1 100.0 93.7 0 9.1 100.0 93.7 N/A", "alltoall_perf"),
        ("16384 256 float none -1 9.1 100.0 93.7 N/A 9.1 100.0 93.7 N/A", None),
        ("16384 4096 float none -1 9.1 100.0 93.7 0 9.1 100.0 93.7 0", None),
        ("16384 4096 float none 0 9.1 100.0 100.0 0 9.1 100.0 100.0 0", "broadcast_perf"),
        ("16384 4096 float sum 3 9.1 100.0 100.0 0 9.1 100.0 100.0 0", "reduce_perf"),
        ("16384 256 float none 0 9.1 100.0 93.7 0 9.1 100.0 93.7 0", None),
        ("16380 256 float none -1 9.1 100.0 93.7 0 9.1 100.0 93.7 0", None),
        ("16384 0 float sum -1 9.1 0.0 0.0 0 9.1 0.0 0.0 0", None),
        ("0 0 float sum -1 9.1 0.0 0.0 0 9.1 0.0 0.0 0", None),
        ("16384 x float sum -1 9.1 100.0 187.5 0 9.1 100.0 187.5 0", None),
        ("x 4096 float sum -1 9.1 100.0 187.5 0 9.1 100.0 187.5 0", None),
        ("16384 4096 quad sum -1 9.1 100.0 187.5 0 9.1 100.0 187.5 0", None),
        ("16384", None),
        ("", None),
    ],
)
def test_rows(row: str, name: str | None) -> None:
    """Size, count, reduction, root, and the check in place differ."""
    assert name_of(NEW, row.split()) == name


@pytest.mark.parametrize(
    ("columns", "row", "name"),
    [
        (OLD, "16384 4096 float sum 9.1 17.4 32.7 5e-07 9.1 17.5 32.8 5e-07", "all_reduce_perf"),
        (OLD, "16384 256 float sum 9.1 17.4 16.3 5e-07 9.1 17.5 16.4 5e-07", "reduce_scatter_perf"),
        (
            WITHOUT_REDUCTION,
            "16384 256 float 9.1 17.4 16.3 0e+00 9.1 17.5 16.4 0e+00",
            "all_gather_perf",
        ),
        (
            WITHOUT_REDUCTION,
            "16384 256 float 9.1 17.4 16.3 0e+00 9.1 17.5 16.4 N/A",
            "alltoall_perf",
        ),
    ],
)
def test_older_versions(columns: list[str], row: str, name: str) -> None:
    """They have only the columns that the test needs."""
    assert name_of(columns, row.split()) == name


def test_no_columns() -> None:
    """Without a header, a row says nothing."""
    assert name_of([], ALL_REDUCE.split()) is None
