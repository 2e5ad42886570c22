"""The functions that mutmut can mutate, by its names, and which of them changed since a commit."""

from __future__ import annotations

import ast
import subprocess
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

#: The folders whose functions are mutated.
PLACES = ("webhook", "certs")
#: What mutmut writes between the name of a class and that of its method.
_IN = "\N{LATIN LETTER LATERAL CLICK}"
_KEPT = {"staticmethod", "classmethod"}

_Function = ast.FunctionDef | ast.AsyncFunctionDef


def functions(source: str) -> dict[str, str]:
    """Return the functions of a file that mutmut mutates, by its names for them, and their code.

    The code is a syntax tree as text, without comments and the docstring. mutmut mutates functions
    and methods that are not nested, and no decorated ones but static methods and class methods.
    """
    return {name: _code(node) for name, node in _mutated(ast.parse(source)) if _is_plain(node)}


def _mutated(module: ast.Module) -> Iterator[tuple[str, _Function]]:
    for node in module.body:
        if isinstance(node, _Function):
            yield f"x_{node.name}", node
        elif isinstance(node, ast.ClassDef):
            for one in node.body:
                if isinstance(one, _Function):
                    yield f"x{_IN}{node.name}{_IN}{one.name}", one


def _is_plain(node: _Function) -> bool:
    names = [one.id if isinstance(one, ast.Name) else "" for one in node.decorator_list]
    return not names or (len(names) == 1 and names[0] in _KEPT)


def _code(node: _Function) -> str:
    if ast.get_docstring(node, clean=False) is not None:
        del node.body[0]
    return ast.dump(node)


def changed(before: Iterable[str], after: Mapping[str, str]) -> dict[str, set[str]]:
    """Return, by file, the functions of `after` that no file of `before` has with the same code.

    A function that was only moved to another file has not changed.
    """
    known = {one for source in before for one in functions(source).items()}
    found = {
        path: {name for name, code in functions(source).items() if (name, code) not in known}
        for path, source in after.items()
    }
    return {path: names for path, names in found.items() if names}


def changed_since(base: str) -> dict[str, set[str]]:
    """Return, by file, the functions of the working tree that the commit `base` has not."""
    differ = _git("diff", "--name-only", "--no-renames", base, "--", *PLACES).splitlines()
    new = _git("ls-files", "--others", "--exclude-standard", "--", *PLACES).splitlines()
    there = set(_git("ls-tree", "-r", "--name-only", base, "--", *PLACES).splitlines())
    paths = [path for path in (*differ, *new) if path.endswith(".py")]
    before = (_git("show", f"{base}:{path}") for path in paths if path in there)
    now = {path: Path(path).read_text("utf-8") for path in paths if Path(path).exists()}
    return changed(before, now)


def base_of(branch: str) -> str:
    """Return the commit at which the working tree left `branch`.

    On the branch itself, with nothing changed since its last commit, it is the one before that.
    Raise CalledProcessError if git does not know the branch.
    """
    base = _git("merge-base", "HEAD", branch).strip()
    at_rest = base == _git("rev-parse", "HEAD").strip() and not _git("status", "-s", "--", *PLACES)
    return _git("rev-parse", "HEAD~1").strip() if at_rest else base


def _git(*words: str) -> str:
    return subprocess.run(("git", *words), capture_output=True, check=True, text=True).stdout
