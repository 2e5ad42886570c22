from __future__ import annotations

import subprocess
import sys
import time
from types import FrameType

import pytest

from webhook.decide.launchers.commands import SEARCH_TERMS
from webhook.decide.shell import scripts
from webhook.decide.shell.argv import insert_after
from webhook.decide.shell.scripts import (
    MAX_CHARACTERS,
    MAX_OCCURRENCES,
    SHORT,
    STEPS,
    TOO_DEEP,
    TOO_LARGE,
    TOO_MANY,
    UNCLEAR,
    ScriptReading,
    Scripts,
)
from webhook.decide.shell.words import Command


def read(script: str) -> ScriptReading:
    """Read a pod's only script."""
    return Scripts(SEARCH_TERMS).read(script)


def words_of(script: str) -> list[tuple[str | None, ...]]:
    """Return the words of the commands; the script must be readable."""
    parsed = read(script)
    assert parsed.problem == ""
    return [command.words for command in parsed.commands if not command.assigns]


def test_commands_with_offsets() -> None:
    """Offsets count characters, not bytes."""
    assert read("écho ü; mpirun -x A") == ScriptReading(
        (Command(("mpirun", "-x", "A"), (14, 17, 19)),)
    )


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
    """Lists, loops, functions and substitutions run commands; text and comments do not."""
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
    """A script has no commands if none of them contains a search term."""
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
        ("$'a'", "a"),
        ("$'a\\nb'", "$'a\\nb'"),
        ('$"a"', "$a"),
        ('"\\s"', "\\s"),
        ("a$", "a$"),
        ("<(n)", "<(n)"),
        ('"${A:-$(n)}"', "${A:-$(n)}"),
        ('"$N"', "$N"),
        ("--host=$H", "--host=$H"),
        ("$((1+2))", "$((1+2))"),
        ("{a,b}", None),
        ("x{1..3}'y'", None),
        ("{a}", "{a}"),
        ("x$@", None),
        ('"${@:2}"', None),
        ('"${A[$i]@Q}"', None),
        ('"a@$N"', "a@$N"),
        ('"${A} a@b"', "${A} a@b"),
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
    """Quotes are removed, an expansion to one word is kept, and any other one is unknown."""
    assert words_of(f"mpirun {written} z") == [("mpirun", meant, "z")]


def test_words_behind_redirections() -> None:
    """Redirections may occur anywhere between the words of a command."""
    assert words_of("mpirun a >log b 2>&1 c") == [("mpirun", "a", "b", "c")]
    assert words_of("mpirun a <<E b\nx\nE\n") == [("mpirun", "a", "b")]
    assert words_of("mpirun a <<E >log b\nx\nE\n") == [("mpirun", "a", "b")]
    assert words_of("mpirun a <<<x") == [("mpirun", "a")]


@pytest.mark.parametrize(
    "script",
    [
        *(
            "mpirun a; )",
            "(time); mpirun",
            "a=(b)c mpirun",
            "a >2>mpirun",
            "a `mpirun\\",
            "mpirun; time {",
            "a[b c]=d; mpirun",
            "a[b; mpirun",
            "while a\n\\\n; mpirun; do b; done",
            "a && \\\n | mpirun",
            "mpirun | ! a",
            '"$a" |\n! mpirun',
            "a | time { mpirun; }",
            '(a)"b"; mpirun',
            "{ mpirun; } >x\\",
            "mpirun a; }",
            "mpirun a; done",
            "mpirun a; fi",
            "mpirun a; in",
            "( mpirun a",
        ),
        *("mpirun a;;", "mpirun a; ;", "; mpirun a", "& mpirun a", "| mpirun a", "mpirun a &&"),
        *("() mpirun a", "(mpirun a) b", "{ }; mpirun a", "if mpirun; fi", "if; then mpirun; fi"),
        *(
            "mpirun 'a",
            'mpirun "a',
            "mpirun `a",
            "mpirun $(a",
            "mpirun ${a",
            "mpirun $((a",
            "mpirun \\",
        ),
        *(
            "mpirun a >",
            "mpirun a >;",
            "mpirun a > # b",
            "mpirun a >(",
            "mpirun <<(a)",
            "mpirun <<$a",
        ),
        *(
            "mpirun <<''\n\n",
            "mpirun <<a",
            "mpirun <<a\nb\n",
            "mpirun <<-a\nb",
            "mpirun <<'\ta'\n\ta",
        ),
        *("mpirun $[1]", "mpirun ${ a; }", "mpirun a(b)", "mpirun $((a) | b)", "mpirun $((a)b)"),
        *(
            "((mpirun a); b)",
            "[[ mpirun",
            "[[ a & mpirun ]]",
            "[[ a ]] b; mpirun",
            "a=(x;y) mpirun",
        ),
        *("a=(<x) mpirun", "x a=(mpirun)", "for 1 in a; do mpirun; done", "select ((;;)); mpirun"),
        *("for x; ; do mpirun; done", "for x in a; mpirun; done", "for x in a & do mpirun; done"),
        *("case a b in mpirun) a;; esac", "case; mpirun", "case a in () mpirun;; esac"),
        *(
            "case a in (a|b;) mpirun;; esac",
            "case a in a) mpirun && ;; esac",
            "case a in a) mpirun",
        ),
        *("f() mpirun a", "f(a) { mpirun a; }", "function 'f' { mpirun; }", "f() if\\\nx mpirun"),
        *("mpirun() { :; }; mpirun a", "function mpirun { :; }; mpirun a", "mpirun () { :; }"),
        *("alias mpirun='mpirun -x A'; mpirun a", "mpirun\\\n-x A", "mpirun a >log\\\n-x A"),
        *(
            "i\\\nf mpirun",
            "{ a; }\\\nb; mpirun",
            "mpirun $\\\n(a)",
            "a &\\\n& mpirun",
            "mpirun a\\\n#a\n",
        ),
        *("mpirun a\0", "mpirun \ud800", "mpirun $$(a)", "x=`mpirun \\`a\\``", "x=`mpirun ;;`"),
        *(
            "cat <<E $(a\n) <<E\nmpirun\nE\nE\n",
            "cat <<E [[ $(\n) ]]\nmpirun",
            "[[ a; ]]; mpirun",
        ),
        *(
            "x=$(cat <<E\nmpirun\nE)\nE\n)",
            "cat <<EF\nE\\\nF\nmpirun\nEF",
            "cat <<E\na\\\nE\nmpirun\nE",
        ),
        *(
            'cat <<E\n${a:-"$(mpirun)"}\nE',
            'x="${a:-it\'s}"; mpirun',
            "cat <<E; for x\nin a\nE\nmpirun",
        ),
        *(
            "x=$(cat <<E); mpirun\nE",
            "[[ a\n]] && mpirun <<E && [[ b\n]]\nE",
            "{ a; } >x y; mpirun",
        ),
        *(
            "{ a; } 2x; mpirun",
            "a 2>\nmpirun",
            "a 2>\\\n",
            "mpirun >\\\n\n",
            "case a\\x",
            "case a in\\x) mpirun;; esac",
            "mpirun a \\",
        ),
    ],
)
def test_what_is_unclear_is_left_alone(script: str) -> None:
    """Reading stops at what bash rejects, and at what shells may read differently."""
    assert read(f"mpirun x\n{script}") == ScriptReading(problem=UNCLEAR)


@pytest.mark.parametrize(
    "script",
    [
        *("cat <<\\E; cat <<'F'\"G\"\nE\nFG\nmpirun a", "{ b; } >c>d; mpirun a"),
        *("cat <<E; echo\nmpirun b '\nE\nmpirun a", "b[$c]=d; e['f']=g; h[i]=; [a[; mpirun a"),
        "[[ a == [b] ]] && mpirun a",
        *("mpirun a\r\n", "mpirun a\v", "cat <<A <<B\nx\nA\nmpirun b\nB\nmpirun a", "mpirun a;"),
        *(
            "for x\nin a\ndo mpirun a; done",
            "for ((;;)) ; do mpirun a; done",
            "for x; do mpirun a; done",
        ),
        *("for ((;;)) { mpirun a; }", "for x in ${a[@]}; { mpirun a; }", "for x do mpirun a; done"),
        *("for x in a <(b) # c\ndo mpirun a; done", "select x in b; do mpirun a; done"),
        *(
            "case ${x:-$y}a\\\nb in # c\n(a|b) mpirun a;& c) d;;& *) e; esac",
            "case $(a) in *) mpirun a; esac",
        ),
        *("function f { mpirun a; }", "function f ()\n# b\n( mpirun a )", "f () { mpirun a; }"),
        *(
            "coproc mpirun a",
            "coproc X { mpirun a; }",
            "time -p ( mpirun a )",
            "time mpirun a",
            "! mpirun a",
        ),
        *("{ b; } <<E 2>&1\nE\nmpirun a", "{ b; } > >(c) >d; mpirun a", "{ b; } 2>&1 | mpirun a"),
        *(
            "{ { b; } } && mpirun a",
            "(b)\nmpirun a",
            "[[ a && ( b ) ]] && mpirun a",
            "((1)) && mpirun a",
        ),
        *("if b; then c; elif d; then e; else mpirun a; fi", "until b; do mpirun a; done"),
        *(
            'x="${y:-"b"}" mpirun a',
            "x=\"${y:-'b'}\"; mpirun a",
            "x=${y:-$'b'}; mpirun a",
            "echo ${#x}; mpirun a",
        ),
        *("a=(x $(y)#z # b\n <(c)) mpirun a", "declare -a x=(y); mpirun a", "a+=(x) b=c mpirun a"),
        *(
            ">x y=(z) mpirun a",
            "2>x mpirun a",
            "{fd}>x mpirun a",
            "&>x mpirun a",
            "<(b) | mpirun a",
        ),
        *(
            "x=`b` mpirun a",
            "x=`mpirun a`",
            'x="`mpirun a`"',
            "cat <<E\n`mpirun a`\nE",
            "x=$(b)#c mpirun a",
        ),
        *("x=$((1+(2*3))) mpirun a", 'x=$((${y}+"1"+$((2)))) mpirun a', "echo $((1))#; mpirun a"),
        *(
            "cat <<-E\n\t$(mpirun a)\n\tE",
            "cat <<E\n$(mpirun a)\nE",
            "cat <<E; mpirun a\nc \\\nb\nE",
        ),
        *(
            "cat <<E && mpirun a\nE",
            "x=$(cat <<E\nb\nE\n); mpirun a",
            'x="$\\"" mpirun a',
            "mpirun\\\n a",
        ),
        *("b\\\n; mpirun a", "then=x; mpirun a", "b &\nmpirun a", "b |& mpirun a", "b || mpirun a"),
        *(
            "alias x=y; mpirun a",
            "cat <<E >x\nmpirun\nE\nmpirun a",
            "mpirun a # mpirun",
            "mpirun 2>x a",
        ),
    ],
)
def test_what_is_clear(script: str) -> None:
    """Each of these scripts runs one launcher with one word."""
    words = [words for words in words_of(script) if "mpirun" in words]
    assert len(words) == 1
    assert (words[0][-1] or "").strip() == "a"


def test_a_word_that_is_two_to_a_shell() -> None:
    """Brackets do not quote, so the blank between them separates two words."""
    assert words_of("mpirun [ ]") == [("mpirun", "[", "]")]


@pytest.mark.parametrize(
    ("script", "problem"),
    [
        ("mpirun a\n" * 4000, TOO_LARGE),
        ("x" * MAX_CHARACTERS + "mpirun", TOO_LARGE),
        ("mpirun;" * (MAX_OCCURRENCES + 1), TOO_MANY),
        ("mpirun;" + ">a<b;" * STEPS, TOO_LARGE),
        ("mpirun;" + "! a;" * 5000, TOO_MANY),
        ("mpirun" + " $a" * 5000, TOO_MANY),
        ("mpirun" + " a" * 9000 + " $a", TOO_MANY),
        ("( " * 8000 + "mpirun", TOO_DEEP),
        ("{ " * 8000 + "mpirun", TOO_DEEP),
        ("mpirun " + "${a:-" * 5000, TOO_DEEP),
        ("mpirun " + "$(" * 65, TOO_DEEP),
        ("mpirun;" + "x=" + "$((" * 65, TOO_DEEP),
        ("mpirun;" + "if " * 65, TOO_DEEP),
        ("mpirun;" + 'x="$(' * 33, TOO_DEEP),
    ],
)
def test_what_is_too_much_is_left_alone(script: str, problem: str) -> None:
    """Length, nesting, the number of search terms and the scanner's steps are bounded."""
    assert read(script) == ScriptReading(problem=problem)


def test_just_within_bounds() -> None:
    """Scripts exactly at the bounds are read, such as one with 64 levels."""
    assert words_of("( " * 64 + "mpirun a" + " )" * 64) == [("mpirun", "a")]
    assert len(words_of("mpirun;" * MAX_OCCURRENCES)) == MAX_OCCURRENCES
    assert words_of("x" * (MAX_CHARACTERS - 9) + "\nmpirun a") == [("mpirun", "a")]


def test_the_bounds_are_the_pods() -> None:
    """All scripts of a pod share them; reading an equal script again is free and gives the same."""
    scripts = Scripts(SEARCH_TERMS)
    large = "mpirun a\n" + "# x\n" * 3000
    assert scripts.read(large).commands
    other = large + "#" * 12_000
    assert scripts.read(other) == scripts.read(other) == ScriptReading(problem=TOO_LARGE)
    assert scripts.read(large) is scripts.read(str(large))
    assert scripts.read("mpirun;" * MAX_OCCURRENCES) == ScriptReading(problem=TOO_MANY)
    assert scripts.read("mpirun a;").commands
    long_script = "mpirun;" + "! a;" * 2100
    assert scripts.read(long_script).commands
    assert scripts.read(long_script + "#") == ScriptReading(problem=TOO_MANY)
    assert scripts.read("mpirun b") == ScriptReading(problem=TOO_MANY)
    assert not scripts.spend_steps(2)


def test_only_short_scripts_are_remembered() -> None:
    """The cache across pods holds 16 scripts of at most 4,096 characters each."""
    short, long = f"mpirun {'a' * (SHORT - 7)}", f"mpirun {'a' * (SHORT - 6)}"
    assert read(short) is read(short)
    assert read(long) is not read(long)
    assert read(long) == read(long)


def test_insertion() -> None:
    """A blank is added so that the inserted text's last digit does not become a descriptor."""
    assert insert_after("é mpirun a; mpirun", [18, 8], " 0") == "é mpirun 0 a; mpirun 0"
    assert insert_after("mpirun>log", [6], " 0") == "mpirun 0 >log"
    assert insert_after("mpirun<in", [6], " 0") == "mpirun 0 <in"
    assert insert_after("mpirun", [], " 0") == "mpirun"


CRASH = (
    "from webhook.decide.launchers.commands import SEARCH_TERMS; "
    "from webhook.decide.shell.scripts import Scripts; "
    "print(Scripts(SEARCH_TERMS).read(%r).problem)"
)


def test_a_script_that_killed_the_process() -> None:
    """A C parser read past the end of these 1.5 KB; bash rejects them, and so does the webhook."""
    script = "\ta[é" * 300 + "\nmpirun x"
    ran = subprocess.run(
        [sys.executable, "-c", CRASH % script], capture_output=True, text=True, check=False
    )
    assert (ran.returncode, ran.stdout) == (0, "unclear\n"), ran.stderr


def calls(script: str) -> int:
    """Count the function calls, Python's own included, that reading a script takes."""
    counted = 0

    def count(_frame: FrameType, event: str, _arg: object) -> None:
        nonlocal counted
        counted += event in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(count)
    try:
        scripts._read(script, SEARCH_TERMS)  # bypasses the cache
    finally:
        sys.setprofile(before)
    return counted


SHAPES = [
    *(
        "( ",
        "{ ",
        "${a:-",
        "$(",
        "`",
        '"$(',
        "$((",
        "((",
        "[[ ",
        "a=(",
        "<(",
        "if ",
        "case a in ",
        "f() ",
    ),
    *(
        "a;",
        "a|",
        "a\n",
        "a b ",
        "$a",
        "${a}",
        "$(a)",
        "`a`",
        "``",
        "(a);",
        "{ a;};",
        "[[ a ]];",
        "((1));",
    ),
    *(
        "a=(x);",
        "<(a) ",
        "a<b ",
        "2>a ",
        "#\n",
        "a#b",
        "for a in b;do c;done;",
        "case a in b)c;;esac;",
    ),
    *(
        "f(){ a;};",
        "! a;",
        "a\\\n ",
        "\ta[é",
        "<<a\na\n",
        "<<'a'\na\n",
        ":<<a;:<<b\na\nb\n",
        "]",
        "{",
        "'a'",
    ),
    *(
        '"${a}"',
        "$'a'",
        "\\a",
        "a{b,c} ",
        "mpirun ",
        "sshd;",
        "&&",
        "a&",
        "a\\\n",
        "<<-a\n\ta\n",
        "a=b ",
        "a[b]=c ",
    ),
    *(
        "$(a | b)",
        '"a',
        "'a",
        "a@${b}",
        "mpirun $(",
        'mpirun "$(mpirun )" ',
        "[[ ] ",
        "<<a ",
        "$[",
        "x)",
        "in ",
    ),
]


@pytest.mark.parametrize("shape", SHAPES)
def test_work_is_linear(shape: str) -> None:
    """Twice the length takes at most twice the function calls."""
    once, twice = (calls("mpirun x\n" + shape * times) for times in (400, 800))
    assert twice <= 2 * once + 40


@pytest.mark.parametrize("shape", SHAPES)
def test_work_within_a_run_is_linear(shape: str) -> None:
    """Regular expressions do not backtrack.

    Sixteen times the length takes at most 96 times the CPU time; quadratic work would take 256.
    """
    short, long = (("mpirun x\n" + shape * times)[:MAX_CHARACTERS] for times in (250, 4000))
    bound = 6 * min(_seconds(short) for _ in range(3)) + 2e-6
    assert any(_seconds(long) <= bound for _ in range(3))


def _seconds(script: str) -> float:
    """Return the CPU seconds for each character."""
    start = time.process_time()
    scripts._read(script, SEARCH_TERMS)
    return (time.process_time() - start) / len(script)
