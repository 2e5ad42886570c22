"""Tests of which functions `make mutants` mutates."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.mutants.changed import base_of, changed, changed_since, functions

BEFORE = '''
LIMIT = 1


def first(value):
    """Say what it does."""
    return value


def second(value):
    return value + LIMIT


class Box:
    def first(self):
        return 1

    async def second(self):
        return 2
'''


def test_functions_have_the_names_that_mutmut_gives_them() -> None:
    """A method's name includes its class, between two letters that no other name has."""
    assert list(functions(BEFORE)) == ["x_first", "x_second", "xǁBoxǁfirst", "xǁBoxǁsecond"]


def test_what_mutmut_leaves_alone_is_no_function_to_mutate() -> None:
    """Decorated functions are skipped, and a nested one is part of the function around it."""
    source = """
@lru_cache
def remembered(): ...

@staticmethod
@other
def twice(): ...

class Box:
    @classmethod
    def made(cls):
        def inside(): ...

    @property
    def size(self): ...

    class Lid:
        def shut(self): ...
"""
    assert list(functions(source)) == ["xǁBoxǁmade"]


@pytest.mark.parametrize(
    ("old", "new", "names"),
    [
        ("return 1", "return 3", {"xǁBoxǁfirst"}),
        ("return value\n", "return -value\n", {"x_first"}),
        ("def second(value)", "def second(value=0)", {"x_second"}),
        ("second(self)", "third(self)", {"xǁBoxǁthird"}),
        ("class Box", "def third(): ...\n\nclass Box", {"x_third"}),
        ("Say what", "Tell what", set()),
        ("return 2", "return (2)  # as before", set()),
        ("LIMIT = 1", "LIMIT = 2", set()),
        ("def second(value):\n    return value + LIMIT\n", "", set()),
    ],
    ids=[
        "method",
        "function",
        "signature",
        "renamed",
        "added",
        "docstring",
        "comment and brackets",
        "constant",
        "removed",
    ],
)
def test_a_function_has_changed_if_its_code_has(old: str, new: str, names: set[str]) -> None:
    """Changes to docstrings, comments, layout and a function's surroundings do not count."""
    after = BEFORE.replace(old, new, 1)
    assert after != BEFORE
    assert changed([BEFORE], {"a.py": after}) == ({"a.py": names} if names else {})


def test_a_function_that_moved_has_not_changed() -> None:
    """It may move within its file or to another one; a function that is new there counts."""
    moved = "def second(value):\n    return value + LIMIT\n"
    assert changed([BEFORE, ""], {"b.py": f"def new(): ...\n{moved}"}) == {"b.py": {"x_new"}}


def git(*words: str) -> str:
    """Run git with a test author in the current folder."""
    author = ("-c", "user.name=A", "-c", "user.email=a@example.com")
    return subprocess.run(
        ("git", *author, *words), check=True, capture_output=True, text=True
    ).stdout.strip()


@pytest.fixture
def written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Make a repository with one file in webhook, and change to its folder."""
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "webhook" / "box.py"
    path.parent.mkdir()
    path.write_text(BEFORE)
    git("init", "-q", "-b", "main")
    git("add", ".")
    git("commit", "-q", "-m", "Begin")
    return path


def test_a_branch_is_compared_with_where_it_left_main(written: Path) -> None:
    """Commits, uncommitted edits and new files count; later commits to main do not."""
    start = git("rev-parse", "HEAD")
    git("checkout", "-q", "-b", "mine")
    written.write_text(BEFORE.replace("return 1", "return 3"))
    git("commit", "-q", "-a", "-m", "Change a method")
    written.write_text(written.read_text().replace("return value\n", "return -value\n"))
    written.with_name("new.py").write_text("def new(): ...\n")
    written.with_name("notes.txt").write_text("def none(): ...\n")
    Path("other.py").write_text("def other(): ...\n")
    git("branch", "-f", "main", git("commit-tree", "-p", start, "-m", "Go on", f"{start}^{{tree}}"))
    assert base_of("main") == start
    assert changed_since(start) == {
        "webhook/box.py": {"xǁBoxǁfirst", "x_first"},
        "webhook/new.py": {"x_new"},
    }


def test_main_itself_is_compared_with_its_last_commit_but_one(written: Path) -> None:
    """Uncommitted edits are compared with the last commit instead."""
    start = git("rev-parse", "HEAD")
    git("mv", "webhook/box.py", "webhook/chest.py")
    chest = written.with_name("chest.py")
    chest.write_text(BEFORE.replace("return 1", "return 3"))
    git("commit", "-q", "-a", "-m", "Rename a file, and change a method")
    assert base_of("main") == start
    assert changed_since(start) == {"webhook/chest.py": {"xǁBoxǁfirst"}}
    chest.write_text(BEFORE)
    assert base_of("main") == git("rev-parse", "HEAD")
