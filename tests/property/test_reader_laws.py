"""Laws of all readers: whatever happens to a saved text, nothing is invented, and it is linear."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from tests.growth import MAX_CPU_RATIO, MAX_LINES_RATIO, cpu_ratio, executed_lines
from webhook.diagnose.tools.observations import Line, Observation, PcieLink, PortObservation
from webhook.diagnose.tools.readers import read
from webhook.diagnose.tools.transcripts import split_by_node

FIXTURES = sorted((Path(__file__).parents[1] / "unit/diagnose/tools/fixtures").glob("**/*.txt"))
TEXTS = {
    file.stem: file.read_text(encoding="utf-8")
    for file in FIXTURES
    if file.parent.name != "node_outputs"
}
#: Outputs with everything below a header or in one row, without deliberate damage.
COMPLETE = {
    name: TEXTS[name]
    for name in (
        *("amd_smi", "ibdev2netdev", "ibdev2netdev.verbose", "ibstat", "ibstatus", "ibv_devinfo"),
        *("ibv_devinfo.vendors", "ibv_devinfo.verbose", "iblinkinfo", "ip_brief"),
        *("mst_status.verbose", "rdma_link", "rdma_link_json", "rocm_smi.names", "show_gids"),
    )
}
#: Outputs whose parts may show more than the whole: a later value overrides an earlier one, or a
#: legend renames a column.
OVERRIDDEN = ("containerd_memlock", "nvidia_smi_topo")
each_complete = pytest.mark.parametrize("text", COMPLETE.values(), ids=COMPLETE)
PLAIN = {name: text for name, text in TEXTS.items() if not name.startswith(OVERRIDDEN)}
each_plain = pytest.mark.parametrize("text", PLAIN.values(), ids=PLAIN)
each_text = pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)


def numbered(text: str) -> list[Line]:
    """Return the lines of a text with their numbers."""
    return [Line(number, line) for number, line in enumerate(text.split("\n"), 1)]


def _weaker(part: Observation, full: Observation) -> bool:
    """Return whether a record has the values of another record, or fewer."""
    if type(part) is not type(full) or part.origin.tool != full.origin.tool:
        return False
    return all(map(_says_less, part[1:], full[1:]))


def _says_less(part: object, full: object) -> bool:
    if isinstance(part, tuple) and isinstance(full, tuple):
        return set(part) <= set(full)
    return part is None or part == full


def invented(part: Sequence[Line], *wholes: Sequence[Line]) -> list[Observation]:
    """Return the records of a part of texts that have more values than the whole texts.

    A record may also combine the values of several records of one port or property.
    """
    records = [observation for lines in wholes for observation in read(lines).observations]
    return [
        observation
        for observation in read(part).observations
        if not any(_weaker(observation, record) for record in records)
        and not all(
            any(_weaker(fact, record) for record in records) for fact in _facts(observation)
        )
    ]


def _facts(observation: Observation) -> Iterator[Observation]:
    """Yield a record for each value, with nothing else but its subject."""
    if not isinstance(observation, PortObservation):
        yield observation
        return
    for name, value in observation._asdict().items():
        if value is not None and name not in ("origin", "device", "port"):
            fact = PortObservation(observation.origin, observation.device, observation.port)
            yield fact._replace(**{name: value})


@each_plain
@settings(max_examples=15)
@given(data=st.data())
def test_a_part_has_no_more_facts_than_the_whole(text: str, data: st.DataObject) -> None:
    """A text that was cut at its beginning and its end has no new fact."""
    all_lines = numbered(text)
    first, last = sorted(data.draw(st.tuples(*[st.integers(0, len(all_lines))] * 2)))
    assert invented(all_lines[first:last], all_lines) == []


@each_complete
@settings(max_examples=25)
@given(data=st.data())
def test_a_missing_line_adds_nothing(text: str, data: st.DataObject) -> None:
    """Without one of its lines, even a header, an output has no new fact."""
    all_lines = numbered(text)
    missing = data.draw(st.integers(0, len(all_lines) - 1))
    assert invented([*all_lines[:missing], *all_lines[missing + 1 :]], all_lines) == []


def _begins(part: object, full: object) -> bool:
    """Return whether a value is the beginning of another whose end was cut off."""
    if part is None or part == full:
        return True
    if isinstance(part, PcieLink) and full is None:
        return part.width in (2, 25)  # 255, which sysfs shows for an unknown width, was cut off
    if isinstance(part, tuple) and isinstance(full, tuple):
        return all(any(_begins(value, other) for other in full) for value in part)
    if isinstance(part, int | float) and isinstance(full, int | float):
        formats = ("d", "x") if isinstance(part, int) and isinstance(full, int) else ("g",)
        return any(f"{full:{form}}".startswith(f"{part:{form}}") for form in formats)
    return isinstance(part, str) and isinstance(full, str) and full.startswith(part)


def _is_left(part: Observation, full: Observation) -> bool:
    """Return whether a record is the remainder of another whose values were cut off."""
    if isinstance(part, PortObservation) and not any(part[2:]):  # a name, or its beginning
        return _begins(part.device, getattr(full, "device", None))
    return type(part) is type(full) and all(map(_begins, part[1:], full[1:]))


def _made_up(part: Sequence[Line], all_lines: Sequence[Line]) -> list[Observation]:
    """Return the records of a cut text that are no remainder of a record of the whole text.

    A line that no reader recognizes may begin like a line that a reader does.
    """
    reading = read(all_lines)
    return [
        observation
        for observation in read(part).observations
        if observation.origin.line in reading.recognized_lines
        and not any(_is_left(observation, other) for other in reading.observations)
    ]


@each_plain
@settings(max_examples=25)
@given(data=st.data())
def test_a_narrow_window_only_shortens_values(text: str, data: st.DataObject) -> None:
    """If each line was cut at a column, a record has the beginnings of its values, or fewer."""
    columns = data.draw(st.integers(1, 100))
    all_lines = numbered(text)
    assert (
        _made_up([line._replace(text=line.text[:columns]) for line in all_lines], all_lines) == []
    )


@each_plain
@settings(max_examples=25)
@given(data=st.data())
def test_a_file_that_ends_early_only_shortens_its_last_value(
    text: str, data: st.DataObject
) -> None:
    """A text that was cut anywhere gives records of the whole text, the last one shortened."""
    cut = text[: data.draw(st.integers(0, len(text)))]
    assert _made_up(numbered(cut), numbered(text)) == []


@settings(max_examples=60)
@given(data=st.data())
def test_mixed_outputs_of_two_tools_stay_separate(data: st.DataObject) -> None:
    """The interleaved lines of two tools give no fact that neither has.

    Two outputs of one tool cannot be distinguished line by line.
    """
    first, second = data.draw(st.permutations(sorted(COMPLETE)).map(lambda names: names[:2]))
    assume(first.partition(".")[0] != second.partition(".")[0])
    first_lines, second_lines = numbered(COMPLETE[first]), numbered(COMPLETE[second])
    turns = data.draw(st.lists(st.booleans(), min_size=len(first_lines) + len(second_lines)))
    left, right = iter(first_lines), iter(second_lines)
    mixed = [line for turn in turns if (line := next(left if turn else right, None))]
    assert invented([*mixed, *left, *right], first_lines, second_lines) == []


@each_text
def test_colors_and_line_ends_change_nothing(text: str) -> None:
    """Colors and the line ends of Windows are not part of a tool's output."""
    painted = "\r\n".join(f"\x1b[1;31m{line}\x1b[0m" for line in text.split("\n"))
    assert split_by_node(painted) == split_by_node(text)


@settings(max_examples=80)
@given(data=st.data())
def test_no_text_is_too_odd(data: st.DataObject) -> None:
    """Cut anywhere, with narrow columns and in another order, a text is read without an error."""
    text = data.draw(st.sampled_from([file.read_text(encoding="utf-8") for file in FIXTURES]))
    text = text[: data.draw(st.integers(0, len(text)))]
    columns = data.draw(st.integers(1, 120))
    narrow = data.draw(st.permutations([line[:columns] for line in text.split("\n")]))
    for output in split_by_node("\n".join(narrow)):
        assert read(output.lines).recognized_lines <= {line.number for line in output.lines}


WORDS = ("n1", ": ", "CA 'x'", "\n", "ok: [n1] => {", '"', "[", "]", "-" * 15, "$ ", "\x1b[", "\\")


@given(text=st.text() | st.lists(st.sampled_from(WORDS) | st.text(max_size=3)).map("".join))
def test_any_text_can_be_read(text: str) -> None:
    """A text that no tool wrote is split and read without an error."""
    for output in split_by_node(text):
        read(output.lines)


def _read_all(text: str) -> None:
    for output in split_by_node(text):
        read(output.lines)


def test_twice_the_text_is_at_most_twice_the_lines() -> None:
    """Each loop over a text runs a fixed number of times for each of its lines."""
    text = "\n".join(COMPLETE.values())
    small, large = (executed_lines(partial(_read_all, text * size)) for size in (1, 2))
    assert large <= MAX_LINES_RATIO * small


LONG = {
    "blanks": " ",
    "tabs": "\t",
    "digits": "1",
    "letters": "a",
    "words": "mlx5_0 ",
    "hosts": "n1.",
    "prefixes": "n1: ",
    "keys": "State: ",
    "quotes": '"',
    "items": '"a", ',
    "ranges": "n[1-2],",
    "paths": "/mlx5_0",
    "addresses": "10.0.0.1/8 ",
    "hexadecimal": "fe80:",
    "objects": '{"ifindex":1,"ifname":"a","port":1,',
    "escapes": "\\x1b[",
    "dashes": "-",
    "prompts": "root@n1:~# ",
}


@pytest.mark.parametrize("piece", LONG.values(), ids=LONG)
@pytest.mark.parametrize("end", ["", "\n"], ids=["one line", "many lines"])
def test_four_times_the_letters_are_about_four_times_the_work(piece: str, end: str) -> None:
    """No pattern searches a long line, or many, again and again."""
    small, large = (f"{piece}{end}" * (size // len(piece)) for size in (3000, 12000))
    assert cpu_ratio(partial(_read_all, small), partial(_read_all, large)) < MAX_CPU_RATIO
