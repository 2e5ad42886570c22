"""Prove the unit of a bandwidth by the rate of messages beside it.

perftest prints one number whose unit only the header tells, and the header may be that of another
process: two of them share a terminal, and a server prints the client's numbers. Messages a second
times bytes have no such doubt.
"""

from __future__ import annotations

from typing import NamedTuple

#: Gb/s in one of each unit that is in use. perftest's MB are 2^20 bytes (renamed to MiB in 24.07).
_PERFTEST_UNITS = (1.0, 8 * 2**20 / 1e9)
#: The parts of the value by which two ways to compute it may differ.
_TOLERANCE = 0.01


class Throughput(NamedTuple):
    """An average and a peak in Gb/s."""

    average: float
    #: None if it was not measured.
    peak: float | None


class PrintedNumber(NamedTuple):
    """A number with the half of its last digit."""

    value: float
    half: float


def printed_number(word: str) -> PrintedNumber:
    """Read a number in decimal notation; ValueError if it is none."""
    decimals = len(word.partition(".")[2])
    return PrintedNumber(float(word), 0.5 * 10.0**-decimals)


def proven_throughput(
    size: int, average: str, peak: str | None, mega_messages: str
) -> Throughput | None:
    """Return what `average` means; None if no unit, or more than one, fits the message rate.

    A zero is zero in each unit; perftest prints it where it could not measure the clock
    (linux-rdma/perftest, src/get_clock.c).

    size           bytes of a message
    average, peak  as printed, both in the same unit
    mega_messages  millions of messages a second, as printed
    """
    rate, shown = printed_number(mega_messages), printed_number(average)
    if shown.value == rate.value == 0:
        return Throughput(0.0, None)
    bits = size * 8 / 1000
    fitting = [
        unit
        for unit in _PERFTEST_UNITS
        if abs(shown.value * unit - rate.value * bits)
        <= rate.half * bits + shown.half * unit + _TOLERANCE * shown.value * unit
    ]
    if len(fitting) != 1 or shown.value <= 0:
        return None
    (unit,) = fitting
    highest = float(peak) * unit if peak else 0.0
    return Throughput(round(shown.value * unit, 3), round(highest, 3) or None)
