"""Compare how bash, tree-sitter and the webhook read shell scripts.

bash is the judge: the webhook must leave alone what bash rejects; what bash runs gets the flag
and otherwise runs as before. tree-sitter is a second opinion; where it differs, bash decides.
"""

from __future__ import annotations

import os
from random import Random

import pytest
from hypothesis import given, settings

from tests.shell import corpus, judges
from tests.shell.corpus import Case
from tests.shell.scripts import fragments, scripts
from webhook.decide.launchers.commands import Commands
from webhook.decide.shell import patterns
from webhook.decide.shell.argv import insert_after
from webhook.decide.shell.scripts import TOO_LARGE, TOO_MANY, UNCLEAR
from webhook.model.pod import Pod

pytestmark = pytest.mark.skipif(not judges.BASH, reason="no bash here")

WRITTEN = corpus.written()
GENERATED = corpus.generated()
ALL = [*WRITTEN, *GENERATED]
#: The largest share of the scripts accepted by bash that the webhook may not understand.
UNKNOWN = 0.08
#: The same for the scripts of this machine.
UNKNOWN_HERE = 0.04
#: How many scripts of this machine are checked; SHELL_SWEEP=1 checks all.
SAMPLE = 40

#: Where tree-sitter 0.25.1 reads the page differently, and bash agrees with the webhook.
DIFFERENCES = {
    "a coprocess": "takes `coproc` for a program",
    "a named coprocess": "takes `coproc` for a program and the group for its words",
    "time of a group": "takes `time` for a program and the group for its words",
    "two negations": "takes the second `!` for a program",
    "a here-document": "does not look between backticks in a here-document",
    "a here-document behind a bar at the end of a line": "takes its text for a command",
}
#: Where tree-sitter reports an error, although bash runs the script.
ERRORS = (
    *("a dollar that is none", "an element of a quoted key", "an empty substitution"),
    *("backticks with a comment", "for without in and semicolon", "for with in on the next line"),
    *("for with an empty list", "for with braces", "a group in a group"),
    *("an output that overwrites", "a here-document quoted otherwise", "two here-documents"),
    *("words behind a here-document", "a here-document in a condition"),
    *("a here-document in a case", "a here-document with the delimiter in a line"),
    *("a here-document with a string over lines", "a here-document with an escaped dollar"),
)


@pytest.fixture(scope="module")
def sandbox(tmp_path_factory: pytest.TempPathFactory) -> judges.Sandbox:
    """Make a place where scripts can do no harm."""
    return judges.Sandbox(tmp_path_factory.mktemp("sandbox"))


def flagged(script: str) -> str:
    """Insert the flag after every launcher that may be edited."""
    manifest = {"spec": {"containers": [{"command": ["bash", "-c", script]}]}}
    launches = Commands(Pod(manifest)).launches(("spec", "containers", 0))
    ends = [
        launch.script_offset
        for launch in launches
        if launch.script_offset is not None and launch.editable
    ]
    return insert_after(script, ends, judges.FLAG)


def judged(case: Case, sandbox: judges.Sandbox) -> list[str]:
    """Check that bash and the webhook agree on a case; return the lines for the page."""
    script = case.script
    problem = judges.our_reading(script).problem
    if judges.rejects(script):
        assert problem == UNCLEAR
        return ["=!"]
    edited = flagged(script)
    assert not judges.rejects(edited)
    before, after = sandbox.run(script), sandbox.run(edited)
    lines = [_mark(line) for line in after.launched]
    assert sorted(line[3:] for line in lines) == sorted(before.launched)
    assert after.trace == before.trace
    return [*sorted(lines), *(["=?"] if problem else [])]


def _mark(line: str) -> str:
    return f"=> {line.replace(judges.FLAG, '', 1)}" if judges.FLAG in line else f"-> {line}"


def test_the_page_is_what_bash_did(sandbox: judges.Sandbox) -> None:
    """Edited scripts run the same launchers with the same words and the flag, and nothing else."""
    results = [(case, judged(case, sandbox)) for case in WRITTEN]
    parts = ["\n".join([f"%% {case.about}", case.script, *lines]) for case, lines in results]
    fresh = "\n".join([corpus.head(), *parts]) + "\n"
    if os.environ.get("UPDATE_GOLDEN"):
        corpus.PAGE.write_text(fresh, encoding="utf-8")
    assert corpus.PAGE.read_text(encoding="utf-8") == fresh, "run `make golden`, read the diff"


def test_every_launch_in_every_place(sandbox: judges.Sandbox) -> None:
    """In every place of a command, every kind of launch gets the flag, and runs as before."""
    differing = [
        (case, lines) for case in GENERATED if (lines := judged(case, sandbox)) != list(case.judged)
    ]
    assert differing == []


def test_the_corpus_is_large_and_mostly_understood() -> None:
    """The corpus is large, and only a small share of it may count as not understood."""
    accepted = [case for case in ALL if case.judged != ("=!",)]
    unknown = [case.about for case in accepted if "=?" in case.judged]
    assert len(WRITTEN) >= 250
    assert len(ALL) >= 350
    assert len(unknown) <= UNKNOWN * len(accepted)


def test_the_second_opinion_on_the_corpus() -> None:
    """tree-sitter finds the same commands, except in the listed cases."""
    differing, failing = set(), set()
    for case in ALL:
        our_reading, theirs = (
            judges.our_command_names(case.script),
            judges.tree_sitters_names(case.script),
        )
        if our_reading is None or "=!" in case.judged:
            continue
        if theirs is None:
            failing.add(case.about)
        elif {name.end for name in our_reading} != theirs.keys():
            differing.add(case.about)
            assert judges.disagreements(case.script) == []
    assert differing == DIFFERENCES.keys()
    assert failing == set(ERRORS)


def here() -> list[str]:
    """Read shell scripts of this machine that bash accepts."""
    paths = judges.scripts_of_this_machine(largest=32 * 1024)
    if not paths:
        pytest.skip("no shell scripts on this machine")
    if not os.environ.get("SHELL_SWEEP"):
        paths = Random(0).sample(paths, min(SAMPLE, len(paths)))
    texts = [path.read_bytes().decode(errors="replace") for path in paths]
    return [text for text in texts if "\0" not in text and not judges.rejects(text)]


def test_scripts_of_this_machine() -> None:
    """Nearly all are understood, as bash reads them; a command renamed to a launcher is found."""
    unknown, differing, missed = 0, [], []
    scripts = here()
    for script in scripts:
        names = judges.our_command_names(script)
        if names is None:
            unknown += 1
            continue
        differing += judges.disagreements(script) or []
        missed += [name for name in _sample(names) if not _finds(script, name)]
    assert differing == []
    assert missed == []
    assert unknown <= UNKNOWN_HERE * len(scripts) + 1


def _sample(names: list[judges.Name]) -> list[judges.Name]:
    """Choose plain names, except names that declare variables: launchers accept no arrays."""
    plain = [
        name for name in names if name.word and name.word.isascii() and name.word.isidentifier()
    ]
    plain = [name for name in plain if not patterns.DECLARING.match(f"{name.word} ")]
    return Random(0).sample(plain, min(3, len(plain)))


def _finds(script: str, name: judges.Name) -> bool:
    assert name.word is not None
    start = name.end - len(name.word)
    changed = f"{script[:start]}mpirun{script[name.end :]}"
    reading = judges.our_reading(changed)
    ends = [end for command in reading.commands for end in command.ends]
    return start + len("mpirun") in ends or reading.problem in (TOO_MANY, TOO_LARGE)


@given(scripts() | fragments())
@settings(max_examples=60)
def test_any_script(script: str) -> None:
    """Bash accepts a script that the webhook understands, before and after the edit.

    Arrays are not checked in full: a script with one may be edited although bash rejects it.
    """
    if judges.our_reading(script).problem:
        return
    rejected = judges.rejects(script)
    assert not rejected or "=(" in script
    edited = flagged(script)
    assert edited == script or judges.rejects(edited) == rejected
    assert rejected or not judges.disagreements(script)
