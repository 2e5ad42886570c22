"""Laws of all readers: whatever happens to a saved text, nothing is invented, and it is linear."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from tests.growth import DOUBLE, FOURFOLD, fourfold, lines
from webhook.diagnose.tools.observations import Line, Observation, PcieLink, PortObservation
from webhook.diagnose.tools.readers import read
from webhook.diagnose.tools.transcripts import split_by_node

FIXTURES = sorted((Path(__file__).parents[1] / "unit/diagnose/tools/fixtures").glob("**/*.txt"))
TEXTS = {
    one.stem: one.read_text(encoding="utf-8") for one in FIXTURES if one.parent.name != "captures"
}
#: Outputs that say everything below a header or in one row, none of them spoilt on purpose.
WHOLE = {
    name: TEXTS[name]
    for name in (
        *("ibdev2netdev", "ibdev2netdev.verbose", "ibstat", "ibstatus", "ibv_devinfo"),
        *("ibv_devinfo.verbose", "iblinkinfo", "ip_brief", "mst_status.verbose", "rdma_link"),
        *("rdma_link_json", "show_gids"),
    )
}
#: What is cut off here may be the value that overrides another, or the legend of a table.
OVERRIDDEN = ("containerd_memlock", "nvidia_smi_topo")
each_whole = pytest.mark.parametrize("text", WHOLE.values(), ids=WHOLE)
PLAIN = {name: text for name, text in TEXTS.items() if not name.startswith(OVERRIDDEN)}
each_plain = pytest.mark.parametrize("text", PLAIN.values(), ids=PLAIN)
each_text = pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)


def numbered(text: str) -> list[Line]:
    """Return the lines of a text with their numbers."""
    return [Line(number, line) for number, line in enumerate(text.split("\n"), 1)]


def _weaker(part: Observation, whole: Observation) -> bool:
    """Return whether a record says the same as another one, or less."""
    if type(part) is not type(whole) or part.origin.tool != whole.origin.tool:
        return False
    return all(map(_says_less, part[1:], whole[1:]))


def _says_less(few: object, many: object) -> bool:
    if isinstance(few, tuple) and isinstance(many, tuple):
        return set(few) <= set(many)
    return few is None or few == many


def invented(part: Sequence[Line], *wholes: Sequence[Line]) -> list[Observation]:
    """Return the records of a part of texts that say more than those of the whole texts do.

    A record may also put together what several records of one port or setting say.
    """
    known = [one for whole in wholes for one in read(whole).observations]
    return [
        one
        for one in read(part).observations
        if not any(_weaker(one, other) for other in known)
        and not all(any(_weaker(fact, other) for other in known) for fact in _facts(one))
    ]


def _facts(observation: Observation) -> Iterator[Observation]:
    """Yield a record for each value, with nothing besides but what it is about."""
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
def test_a_part_says_no_more_than_the_whole(text: str, data: st.DataObject) -> None:
    """A text that was cut at its beginning and its end gives no fact that it did not have."""
    whole = numbered(text)
    first, last = sorted(data.draw(st.tuples(*[st.integers(0, len(whole))] * 2)))
    assert invented(whole[first:last], whole) == []


@each_whole
@settings(max_examples=25)
@given(data=st.data())
def test_a_missing_line_adds_nothing(text: str, data: st.DataObject) -> None:
    """Without one of its lines, be it a header, an output gives no fact that it did not have."""
    whole = numbered(text)
    missing = data.draw(st.integers(0, len(whole) - 1))
    assert invented([*whole[:missing], *whole[missing + 1 :]], whole) == []


def _begins(few: object, many: object) -> bool:
    """Return whether a value is what is left of another one whose end was cut off."""
    if few is None or few == many:
        return True
    if isinstance(few, PcieLink) and many is None:
        return few.width in (2, 25)  # 255, which sysfs shows for an unknown width, was cut off
    if isinstance(few, tuple) and isinstance(many, tuple):
        return all(any(_begins(one, other) for other in many) for one in few)
    if isinstance(few, int | float) and isinstance(many, int | float):
        ways = ("d", "x") if isinstance(few, int) and isinstance(many, int) else ("g",)
        return any(f"{many:{way}}".startswith(f"{few:{way}}") for way in ways)
    return isinstance(few, str) and isinstance(many, str) and many.startswith(few)


def _is_left(part: Observation, whole: Observation) -> bool:
    """Return whether a record is what is left of another one whose values were cut off."""
    if isinstance(part, PortObservation) and not any(part[2:]):  # a name, or its beginning
        return _begins(part.device, getattr(whole, "device", None))
    return type(part) is type(whole) and all(map(_begins, part[1:], whole[1:]))


def _made_up(part: Sequence[Line], whole: Sequence[Line]) -> list[Observation]:
    """Return the records of a cut text that are not what is left of one of the whole text.

    A line that nobody understands as a whole may begin as one that somebody does.
    """
    known = read(whole)
    return [
        one
        for one in read(part).observations
        if one.origin.line in known.recognised_lines
        and not any(_is_left(one, other) for other in known.observations)
    ]


@each_plain
@settings(max_examples=25)
@given(data=st.data())
def test_a_narrow_window_only_shortens_values(text: str, data: st.DataObject) -> None:
    """Where each line was cut at a column, a record says what is left of its values, or less."""
    columns = data.draw(st.integers(1, 100))
    whole = numbered(text)
    assert _made_up([line._replace(text=line.text[:columns]) for line in whole], whole) == []


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
def test_two_tools_in_one_text_stay_apart(data: st.DataObject) -> None:
    """The lines of two tools between each other give no fact that neither has.

    Two outputs of one tool cannot be told apart line by line.
    """
    first, second = data.draw(st.permutations(sorted(WHOLE)).map(lambda names: names[:2]))
    assume(first.partition(".")[0] != second.partition(".")[0])
    one, other = numbered(WHOLE[first]), numbered(WHOLE[second])
    turns = data.draw(st.lists(st.booleans(), min_size=len(one) + len(other)))
    left, right = iter(one), iter(other)
    mixed = [line for turn in turns if (line := next(left if turn else right, None))]
    assert invented([*mixed, *left, *right], one, other) == []


@each_text
def test_what_terminals_do_to_a_text_changes_nothing(text: str) -> None:
    """Colours and the line ends of Windows are not part of what a tool writes."""
    painted = "\r\n".join(f"\x1b[1;31m{line}\x1b[0m" for line in text.split("\n"))
    assert split_by_node(painted) == split_by_node(text)


@settings(max_examples=80)
@given(data=st.data())
def test_no_text_is_too_odd(data: st.DataObject) -> None:
    """Cut anywhere, with narrow columns and in another order, a text is read without an error."""
    text = data.draw(st.sampled_from([one.read_text(encoding="utf-8") for one in FIXTURES]))
    text = text[: data.draw(st.integers(0, len(text)))]
    columns = data.draw(st.integers(1, 120))
    shown = data.draw(st.permutations([line[:columns] for line in text.split("\n")]))
    for capture in split_by_node("\n".join(shown)):
        assert read(capture.lines).recognised_lines <= {line.number for line in capture.lines}


WORDS = ("n1", ": ", "CA 'x'", "\n", "ok: [n1] => {", '"', "[", "]", "-" * 15, "$ ", "\x1b[", "\\")


@given(text=st.text() | st.lists(st.sampled_from(WORDS) | st.text(max_size=3)).map("".join))
def test_any_text_can_be_read(text: str) -> None:
    """A text that no tool wrote is taken apart and read without an error."""
    for capture in split_by_node(text):
        read(capture.lines)


def _read_all(text: str) -> None:
    for capture in split_by_node(text):
        read(capture.lines)


def test_twice_the_text_is_at_most_twice_the_lines() -> None:
    """Each loop over a text runs a fixed number of times for each of its lines."""
    text = "\n".join(WHOLE.values())
    small, large = (lines(partial(_read_all, text * size)) for size in (1, 2))
    assert large <= DOUBLE * small


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
    assert fourfold(partial(_read_all, small), partial(_read_all, large)) < FOURFOLD
