from __future__ import annotations

import pytest

from webhook.core.shell import TOO_LARGE, UNCLEAR, Command, Script, insert_after, read


def words_of(script: str) -> list[tuple[str | None, ...]]:
    """Return the words of the commands found; the script must have no problem."""
    found = read(script)
    assert found.problem == ""
    return [command.words for command in found.commands]


def test_commands_with_byte_offsets() -> None:
    """Offsets count bytes, also behind letters that take several."""
    assert read("écho ü; mpirun -x A") == Script((Command(("mpirun", "-x", "A"), (16, 19, 21)),))


@pytest.mark.parametrize(
    "script",
    [
        "mpirun a",
        "true && mpirun a",
        "true || mpirun a | tee log",
        "(mpirun a)",
        "{ mpirun a; }",
        "! mpirun a",
        "mpirun a & wait",
        "if mpirun a; then true; fi",
        "if true; then :; elif mpirun a; then :; else :; fi",
        "for i in mpirun b; do mpirun a; done",
        "while read x; do mpirun a; done < mpirun",
        "until mpirun a; do sleep 1; done",
        "case mpirun in mpirun) mpirun a;; esac",
        "f() { mpirun a; }; f",
        "x=$(mpirun a)",
        'echo "x $(mpirun a)"',
        "x=`mpirun a`",
        "cat <<E\n$(mpirun a)\nmpirun b\nE",
        "cat <<'E' | mpirun a\nmpirun b\nE",
        "x=(mpirun b); mpirun a",
        "# mpirun b\nmpirun a # mpirun c",
        "[ -x mpirun ] && mpirun a",
        ">log mpirun a",
        "mpirun a >log 2>&1",
    ],
)
def test_commands_wherever_they_stand(script: str) -> None:
    """Lists, loops, functions, substitutions run commands; text and comments do not."""
    assert [words for words in words_of(script) if words[0] == "mpirun"] == [("mpirun", "a")]


@pytest.mark.parametrize(
    "script",
    [
        "# mpirun a",
        "cat <<E\nmpirun a\nE",
        "x='mpirun a'",
        "x=(mpirun a)",
        "((mpirun))",
        "x() { :; }",
    ],
)
def test_text_is_no_command(script: str) -> None:
    """A script without a command that holds a sought word has none."""
    assert words_of(script) == []


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("'a b'", "a b"),
        ('"a b"', "a b"),
        (r"a\ b\\c", r"a b\c"),
        ('"a\\"b\\\nc"', 'a"bc'),
        ("a'b'\"c\"", "abc"),
        ("12", "12"),
        ("$'a'", "$'a'"),
        ('"$N"', "$N"),
        ("--host=$H", "--host=$H"),
        ("$((1+2))", "$((1+2))"),
        ("$N", None),
        ("${N}", None),
        ("$(n)", None),
        ("`n`", None),
        ('"$@"', None),
        ('"${A[@]}"', None),
        ('x"$@"', None),
    ],
)
def test_words_as_the_program_gets_them(written: str, meant: str | None) -> None:
    """Quotes are removed, an expansion that stays one word is kept, any other is not known."""
    assert words_of(f"mpirun {written} z") == [("mpirun", meant, "z")]


def test_words_behind_redirections() -> None:
    """A redirection may stand anywhere between the words of a command."""
    assert words_of("mpirun a >log b 2>&1 c") == [("mpirun", "a", "b", "c")]
    assert words_of("mpirun a <<E b\nx\nE\n") == [("mpirun", "a", "b")]
    assert words_of("mpirun a <<E >log b\nx\nE\n") == [("mpirun", "a", "b")]
    assert words_of("mpirun a <<<x") == [("mpirun", "a")]


@pytest.mark.parametrize(
    "script",
    [
        "mpirun a; )",
        "mpirun\\\n-x A",
        "mpirun a >log\\\n-x A",
        "mpirun a\r\n",
        "mpirun a\0",
        "mpirun\v-x A",
        "mpirun() { :; }; mpirun a",
        "function mpirun { :; }; mpirun a",
        "alias mpirun='mpirun -x A'; mpirun a",
        "cat <<A <<B\nx\nA\nmpirun a\nB\n",
        "mpirun $$(a)",
    ],
)
def test_what_is_unclear_is_left_alone(script: str) -> None:
    """Errors, and what the grammar reads differently from a shell, end the reading."""
    assert read(script) == Script(problem=UNCLEAR)


def test_a_word_that_is_two_to_a_shell() -> None:
    """The grammar takes `[ ]` for one word."""
    assert words_of("mpirun [ ]") == [("mpirun", None)]


@pytest.mark.parametrize(
    "script",
    [
        "mpirun a\n" * 4000,
        "mpirun a; " + "cat <<E\nE\n" * 33,
        "mpirun a; " * 65,
        "mpirun;" + "a|" * 12000,
        "mpirun;" + "export ~(" * 3000,
        "mpirun;" + "{`<" * 2000,
    ],
)
def test_what_would_take_too_long_is_left_alone(script: str) -> None:
    """Size, here-documents, occurrences and the parser's work are limited."""
    assert read(script) == Script(problem=TOO_LARGE)


def test_a_large_script_is_read() -> None:
    """A script beyond what is parsed at once is read all the same."""
    script = "echo some words of a longer script\n" * 200 + "mpirun a\n"
    assert words_of(script) == [("mpirun", "a")]
    assert read(script) is read(script)


def test_any_text_is_taken() -> None:
    """Lone surrogates, which JSON may hold, do no harm."""
    assert read("mpirun \ud800") == Script(problem=UNCLEAR)


def test_insertion() -> None:
    """Text goes to byte offsets; a blank keeps its last digit from becoming a descriptor."""
    assert insert_after("é mpirun a; mpirun", [9, 19], " 0") == "é mpirun 0 a; mpirun 0"
    assert insert_after("mpirun>log", [6], " 0") == "mpirun 0 >log"
    assert insert_after("mpirun<in", [6], " 0") == "mpirun 0 <in"
