"""Tests of how the tests of a mutant are run."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

#: Functions as mutmut writes them, in small: the mutant that is active, if any, decides.
CODE = """
from functools import lru_cache

active, called = "", set()

def doubled(number):
    called.add("double")
    if active == "double__mutmut_endless":
        while True: pass
    if active == "double__mutmut_hungry":
        bytes(2**40)
    return number * (3 if active == "double__mutmut_wrong" else 2)

@lru_cache
def remembered(number):
    return doubled(number)

def unused(): ...

def activate(name):
    global active
    active = name

def reached():
    found = sorted(called)
    called.clear()
    return found
"""
TESTS = """
import code_in_small as code

def test_of_what_is_remembered(): assert code.remembered(2) == 4
def test_of_another_thing(): assert not isinstance(code.active, int)
"""
RUN = """
import json, pathlib, pytest, sys
import code_in_small as code
from tests.mutants import forks

forks._PROCESSOR = forks._CLOCK = 1
results = {}
plugin = forks.ForkedTests(
    sys.argv[1:], jobs=2, folder=pathlib.Path("."), activate=code.activate, reached=code.reached,
    report=results.__setitem__,
)
pytest.main(["-q", "-p", "no:cacheprovider"], plugins=[plugin])
pathlib.Path("results.json").write_text(json.dumps([results, plugin.failed]))
"""


def outcomes(folder: Path, tests: str, *mutants: str) -> list[object]:
    """Run mutants of a small project; return how each ended, and the tests that fail anyhow."""
    (folder / "code_in_small.py").write_text(CODE, "utf-8")
    (folder / "test_small.py").write_text(tests, "utf-8")
    path = f"{folder}:{Path(__file__).parents[3]}"
    command = (sys.executable, "-c", RUN, *mutants)
    subprocess.run(
        command, cwd=folder, env={"PYTHONPATH": path}, check=True, stdout=subprocess.DEVNULL
    )
    found: list[object] = json.loads((folder / "results.json").read_text("utf-8"))
    return found


def test_each_mutant_ends_in_one_way(tmp_path: Path) -> None:
    """Killed by a test or by a limit, survived, or reached by no test.

    A result that the code remembers hides no mutant, although the tests ran before without one.
    """
    endings = {
        "double__mutmut_wrong": "killed",
        "double__mutmut_same": "survived",
        "double__mutmut_endless": "timeout",
        "double__mutmut_hungry": "killed",
        "unused__mutmut_1": "no tests",
    }
    assert outcomes(tmp_path, TESTS, *endings) == [endings, []]


def test_no_mutant_is_run_if_a_test_fails_without_one(tmp_path: Path) -> None:
    """Else each mutant would seem to be killed."""
    failing = TESTS + "def test_that_fails(): assert code.remembered(2) == 5\n"
    assert outcomes(tmp_path, failing, "double__mutmut_wrong") == [
        {},
        ["test_small.py::test_that_fails"],
    ]
