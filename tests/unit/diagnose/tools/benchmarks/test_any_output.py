"""Any text is read without an error, in linear time, and no figure is invented."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.growth import MAX_CPU_RATIO, cpu_ratio
from tests.unit.diagnose.tools.benchmarks import outputs
from webhook.diagnose.tools.benchmarks import read_output
from webhook.diagnose.tools.benchmarks.measurements import (
    MeasuredRow,
    Measurement,
    plain_text,
    printed_number,
    proven_throughput,
)
from webhook.diagnose.tools.logs import matched_lines

FAILED = "Couldn't allocate MR\nfailed to create mr\nPort number 1 state is Down\n"
COMMAND = "$ ib_write_bw -d mlx5_4 -i 1 -D 5 127.0.0.1 --report_gbits\n"
COMPLETE = [
    outputs.bandwidth(),
    outputs.bandwidth(outputs.ROW_MIB, "MB/sec"),
    outputs.latency(),
    outputs.nccl_tests(),
    outputs.ucx_perftest(),
    outputs.ucx_perftest("latency"),
    outputs.JSON,
    outputs.VALID_JSON,
    outputs.PINGS,
    COMMAND,
    FAILED,
]
#: Gb/s per printed unit: Gb/s, MiB/s, GB/s.
UNITS = (1.0, 8 * 2**20 / 1e9, 8.0)

texts = st.sampled_from(COMPLETE)
line_ends = st.sampled_from(["\n", "\r\n", "\r", "\x1b[0m\n", " \n"])


@st.composite
def mangled(draw: st.DrawFn) -> str:
    """Cut, mix and decorate outputs: lines of two in turn, characters lost, colors added."""
    first, second = draw(texts).splitlines(), draw(texts).splitlines()
    turns = draw(st.lists(st.booleans(), max_size=60))
    queues = {True: iter(first), False: iter(second)}
    lines = [line for turn in turns if (line := next(queues[turn], None)) is not None]
    if draw(st.booleans()):
        lines += [*queues[True], *queues[False]]
    text = draw(line_ends).join(lines)
    start, end = sorted(draw(st.tuples(*[st.integers(0, len(text))] * 2)))
    noise = draw(st.sampled_from(["", "\x1b[31m", "\x00", "٣", "²", "9" * 40, ":", "{", "--"]))
    place = draw(st.integers(start, end))
    return text[start:place] + noise + text[place:end]


def numbers(row: MeasuredRow) -> Iterator[float]:
    """Yield the numbers of a row that are printed unchanged."""
    yield from (
        float(figure)
        for figure in (row.size, row.iterations, row.wrong_elements)
        if figure is not None
    )
    yield from (figure for figure in row.latency or () if figure is not None)


@given(mangled())
def test_no_number_is_made_up(text: str) -> None:
    """Every number is in the text; a rate is one of its numbers times a unit.

    Colors are removed from the text first: they may occur inside a number.
    """
    text = plain_text(text)
    printed = {float(figure) for figure in re.findall(r"\d+(?:\.\d+)?", text) if len(figure) < 300}
    rates = {round(number * unit, 3) for number in printed for unit in UNITS}
    for run in read_output(text).measurements:
        for row in run.rows:
            counted = run.program == "rping"
            assert counted or set(numbers(row)) <= printed
            assert {row.gbps, row.peak_gbps, run.average_gbps} - {None} <= rates
        facts = {run.mtu, run.qps, run.port} - {None}
        assert {float(figure) for figure in facts if figure is not None} <= printed
        assert run.device is None or run.device in text


@given(mangled())
def test_lines_exist(text: str) -> None:
    """The lines of runs, rows and failures exist in the text."""
    output = read_output(text)
    last = text.count("\n") + text.count("\r") + 1
    for run in output.measurements:
        assert 1 <= run.line_range[0] <= run.line_range[1] <= last
        assert all(run.line_range[0] <= row.line <= run.line_range[1] for row in run.rows)
    assert all(1 <= failure.number <= last for failure in output.failures)


@given(st.text(max_size=400) | st.text(alphabet="#: 0123456789.\n-|[]{}abmilx_\t", max_size=800))
def test_any_text(text: str) -> None:
    """Nothing raises."""
    read_output(text)


@given(
    st.integers(1, 1 << 30),
    st.floats(0.01, 800, allow_nan=False),
    st.booleans(),
)
def test_the_unit_is_proven(size: int, gbps: float, mebibytes: bool) -> None:
    """A proven unit is the right one, for any printed digits."""
    average = f"{gbps / UNITS[1]:.2f}" if mebibytes else f"{gbps:.2f}"
    throughput = proven_throughput(size, average, None, f"{gbps * 1000 / 8 / size:.6f}")
    unit = UNITS[mebibytes]
    assert throughput is None or throughput.average == round(float(average) * unit, 3)


def test_digits_of_a_number() -> None:
    """A printed number may be off by half a unit of its last digit."""
    assert printed_number("12.50") == (12.5, 0.005)
    assert printed_number("7") == (7.0, 0.5)


def test_known_lines() -> None:
    """Each line of the table is returned, with its number, in the order of the text."""
    matches = matched_lines(
        "\nPort number 1 state is Down\nx\n  Couldn't allocate MR\nPort number 2 state is Down"
    )
    assert [
        (matched_line.number, matched_line.known_line.code, matched_line.line)
        for matched_line in matches
    ] == [
        (2, "PortDown", "Port number 1 state is Down"),
        (4, "PerftestNoMemory", "Couldn't allocate MR"),
        (5, "PortDown", "Port number 2 state is Down"),
    ]


LONG = {
    "dashes": "-",
    "digits": "1",
    "numbers": "1 ",
    "colons": "Device : ",
    "commands": "ib_write_bw -d mlx5_0 ",
    "pairs": '"a": 1, ',
    "title": "RDMA_Write BW ",
    "prefix": "[1,0]<stdout>:",
    "columns": "#bytes #iterations BW average[",
    "escapes": "\x1b[",
    "blanks": " " * 7 + "|",
    **{f"lines-{place}": output for place, output in enumerate(COMPLETE)},
}


@pytest.mark.parametrize("piece", LONG.values(), ids=LONG)
def test_four_times_the_text_is_about_four_times_the_work(piece: str) -> None:
    """The work for any repeated text, in one line or in many, grows no faster than the text."""
    small, large = (piece * (size // len(piece)) for size in (40_000, 160_000))
    assert cpu_ratio(partial(read_output, small), partial(read_output, large)) < MAX_CPU_RATIO


def test_measurements_are_plain() -> None:
    """An empty run has only None values."""
    empty = Measurement("perftest", None, None, (1, 1))
    assert set(empty[4:]) == {(), None}


def test_the_best_bandwidth_is_the_highest_of_a_row() -> None:
    """Rows that only have a latency do not count; without any bandwidth there is no best one."""
    latency, low, high = (MeasuredRow(1, gbps=gbps) for gbps in (None, 46.5, 97.6))
    run = Measurement("perftest", None, None, (1, 1))
    assert run._replace(rows=(low, latency, high)).best_gbps == 97.6
    assert run._replace(rows=(latency,)).best_gbps is None
