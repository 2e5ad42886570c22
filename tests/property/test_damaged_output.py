"""Laws for the readers of tools: damage to an output loses facts, and never makes one up."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

from hypothesis import assume, given
from hypothesis import strategies as st

from webhook.diagnose.tools.observations import Line, Observation
from webhook.diagnose.tools.readers import READERS, read
from webhook.diagnose.tools.transcripts import split_by_node

FIXTURES = Path(__file__).parents[1] / "unit/diagnose/tools/fixtures"
TEXTS = {path.stem: path.read_text("utf-8") for path in sorted(FIXTURES.glob("*.txt"))}
names = st.sampled_from(sorted(TEXTS))
#: The tools that describe a node; those that describe ports shorten GIDs, and leave them open.
OF_NODES = frozenset(
    (
        "containerd_memlock",
        "dmidecode",
        "host_sysfs",
        "hostnamectl",
        "lsmod",
        "lspci",
        "modinfo",
        "nvidia_proc",
        "nvidia_smi_gpus",
        "nvidia_smi_query",
        "nvidia_smi_topo",
        "ofed_info",
        "pci_sysfs",
        "rdma_system",
        "uname",
    )
)
of_nodes = st.sampled_from(sorted(name for name in TEXTS if name.partition(".")[0] in OF_NODES))
#: What terminals, mails and wikis do to a text.
NOISE = st.sampled_from(
    ("\x1b[1;32m", "\r", "\t", "\x00", "|", "…", " ", "\ufeff", "'", "0", "(", ":")
)

Fact = tuple[str, str, str]


def lines_of(text: str) -> list[Line]:
    """Split a text into numbered lines."""
    return [Line(number, line) for number, line in enumerate(text.splitlines(), 1)]


def facts(observations: Iterable[Observation]) -> Iterator[Fact]:
    """Yield what records say: the kind of record, the field, and the value as text."""
    for observation in observations:
        for field, value in observation._asdict().items():
            for part in value if isinstance(value, tuple) else (value,):
                if field != "origin" and part is not None:
                    yield type(observation).__name__, field, str(part)


@cache
def said(text: str) -> frozenset[Fact]:
    """Return what a text says; what a line says alone may be outweighed by another one."""
    lines = lines_of(text)
    parts = (lines, *([line] for line in lines))
    return frozenset(fact for part in parts for fact in facts(read(part).observations))


def made_up(damaged: Iterable[Line], *texts: str) -> list[Fact]:
    """Return what is read from damaged lines, but neither said by the texts nor written in them.

    The beginning of what is said is what is left of it. Half a placeholder of DMI is a value, and
    without the legend of a matrix, NIC0 is the name of a NIC.
    """
    known = frozenset().union(*map(said, texts))
    names = {value for _, field, value in known if field in ("device", "nic")}
    return [
        (kind, field, value)
        for kind, field, value in facts(read(list(damaged)).observations)
        if not (field in ("value", "nic") and any(value in text for text in texts))
        and not any((kind, field) == one[:2] and one[2].startswith(value) for one in known)
        and not (field == "device" and value in names)
    ]


@given(of_nodes, st.integers(0, 130))
def test_cut_columns_make_nothing_up(name: str, width: int) -> None:
    """Lines cut at a column say less: what they still say is what was there, or its beginning."""
    cut = "\n".join(line[:width] for line in TEXTS[name].splitlines())
    assert made_up(lines_of(cut), TEXTS[name]) == []


@given(of_nodes, st.integers(0, 60), st.integers(0, 60))
def test_cut_ends_make_nothing_up(name: str, begin: int, end: int) -> None:
    """A text whose beginning and end are missing says no more than the whole."""
    assert made_up(lines_of(TEXTS[name])[begin : -end or None], TEXTS[name]) == []


@given(of_nodes, of_nodes, st.lists(st.booleans(), max_size=80))
def test_two_tools_in_one_text_make_nothing_up(first: str, second: str, turns: list[bool]) -> None:
    """Outputs of two tools that were written over each other say no more than each of them."""
    assume(first.partition(".")[0] != second.partition(".")[0])
    one, other = TEXTS[first].splitlines(), TEXTS[second].splitlines()
    mixed = [source.pop(0) for turn in turns if (source := one if turn else other)]
    mixed += one + other
    assert made_up(lines_of("\n".join(mixed)), TEXTS[first], TEXTS[second]) == []


@given(names, st.lists(st.tuples(st.integers(0, 3000), NOISE), max_size=30))
def test_noise_does_no_harm(name: str, noise: list[tuple[int, str]]) -> None:
    """Whatever stands in a text, it is read, and each fact has a line of the text."""
    text = TEXTS[name]
    for place, what in noise:
        text = text[:place] + what + text[place:]
    for capture in split_by_node(text):
        numbers = {line.number for line in capture.lines}
        reading = read(capture.lines)
        assert {
            one.origin.line for one in reading.observations
        } | reading.recognised_lines <= numbers


@given(st.lists(st.text(max_size=60), max_size=20))
def test_any_text_is_read(texts: list[str]) -> None:
    """No text makes a reader fail."""
    lines = [Line(number, text) for number, text in enumerate(texts, 1)]
    for reader in READERS:
        reader.read(lines)


@given(names)
def test_windows_line_ends_change_nothing(name: str) -> None:
    """A text with CR LF says what it says with LF."""
    found = [
        read(one.lines).observations for one in split_by_node(TEXTS[name].replace("\n", "\r\n"))
    ]
    assert found == [read(one.lines).observations for one in split_by_node(TEXTS[name])]
