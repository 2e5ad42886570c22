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
#: The tools that describe a node; tools that describe ports shorten GIDs, and leave them open.
OF_NODES = frozenset(
    (
        "amd_smi",
        "amd_smi_table",
        "containerd_memlock",
        "dmidecode",
        "failures",
        "host_sysfs",
        "hostnamectl",
        "lsmod",
        "lspci",
        "modinfo",
        "nvidia_proc",
        "nvidia_smi_gpus",
        "nvidia_smi_query",
        "nvidia_smi_table",
        "nvidia_smi_topo",
        "ofed_info",
        "pci_sysfs",
        "rdma_system",
        "rocm_smi",
        "uname",
    )
)
of_nodes = st.sampled_from(sorted(name for name in TEXTS if name.partition(".")[0] in OF_NODES))
#: Characters that terminals, mails and wikis insert into a text.
NOISE = st.sampled_from(
    ("\x1b[1;32m", "\r", "\t", "\x00", "|", "…", " ", "\ufeff", "'", "0", "(", ":")
)

Fact = tuple[str, str, str]


def lines_of(text: str) -> list[Line]:
    """Split a text into numbered lines."""
    return [Line(number, line) for number, line in enumerate(text.splitlines(), 1)]


def facts(observations: Iterable[Observation]) -> Iterator[Fact]:
    """Yield the facts of records: the kind of record, the field, and the value as text."""
    for observation in observations:
        for field, value in observation._asdict().items():
            for part in value if isinstance(value, tuple) else (value,):
                if field != "origin" and part is not None:
                    yield type(observation).__name__, field, str(part)


@cache
def facts_of(text: str) -> frozenset[Fact]:
    """Return the facts of a text and of its lines alone, which other lines may override."""
    lines = lines_of(text)
    parts = (lines, *([line] for line in lines))
    return frozenset(fact for part in parts for fact in facts(read(part).observations))


def made_up(damaged: Iterable[Line], *texts: str) -> list[Fact]:
    """Return the facts of damaged lines that are neither facts of the texts nor written in them.

    The beginning of a value may remain of it. Half a placeholder of DMI is a value, and without the
    legend of a matrix, NIC0 is the name of a NIC.
    """
    true_facts = frozenset().union(*map(facts_of, texts))
    names = {value for _, field, value in true_facts if field in ("device", "nic")}
    return [
        (kind, field, value)
        for kind, field, value in facts(read(list(damaged)).observations)
        if not (field in ("value", "nic") and any(value in text for text in texts))
        and not any((kind, field) == fact[:2] and fact[2].startswith(value) for fact in true_facts)
        and not (field == "device" and value in names)
    ]


@given(of_nodes, st.integers(0, 130))
def test_cut_columns_make_nothing_up(name: str, width: int) -> None:
    """Lines cut at a column have fewer facts; a remaining value is an original or its beginning."""
    cut = "\n".join(line[:width] for line in TEXTS[name].splitlines())
    assert made_up(lines_of(cut), TEXTS[name]) == []


@given(of_nodes, st.integers(0, 60), st.integers(0, 60))
def test_cut_ends_make_nothing_up(name: str, begin: int, end: int) -> None:
    """A text without its beginning and end has no more facts than the whole."""
    assert made_up(lines_of(TEXTS[name])[begin : -end or None], TEXTS[name]) == []


@given(of_nodes, of_nodes, st.lists(st.booleans(), max_size=80))
def test_mixed_outputs_of_two_tools_make_nothing_up(
    first: str, second: str, turns: list[bool]
) -> None:
    """Interleaved outputs of two tools have no more facts than both separately."""
    assume(first.partition(".")[0] != second.partition(".")[0])
    first_lines, second_lines = TEXTS[first].splitlines(), TEXTS[second].splitlines()
    mixed = [source.pop(0) for turn in turns if (source := first_lines if turn else second_lines)]
    mixed += first_lines + second_lines
    assert made_up(lines_of("\n".join(mixed)), TEXTS[first], TEXTS[second]) == []


@given(names, st.lists(st.tuples(st.integers(0, 3000), NOISE), max_size=30))
def test_noise_does_no_harm(name: str, noise: list[tuple[int, str]]) -> None:
    """Any text is read, and each fact has a line of the text."""
    text = TEXTS[name]
    for place, characters in noise:
        text = text[:place] + characters + text[place:]
    for output in split_by_node(text):
        numbers = {line.number for line in output.lines}
        reading = read(output.lines)
        assert {
            observation.origin.line for observation in reading.observations
        } | reading.recognized_lines <= numbers


@given(st.lists(st.text(max_size=60), max_size=20))
def test_any_text_is_read(texts: list[str]) -> None:
    """No text makes a reader fail."""
    lines = [Line(number, text) for number, text in enumerate(texts, 1)]
    for reader in READERS:
        reader.read(lines)


@given(names)
def test_windows_line_ends_change_nothing(name: str) -> None:
    """A text with CR LF has the same facts as with LF."""
    with_crlf = [
        read(output.lines).observations
        for output in split_by_node(TEXTS[name].replace("\n", "\r\n"))
    ]
    assert with_crlf == [read(output.lines).observations for output in split_by_node(TEXTS[name])]
