"""What the Dockerfile removes from the image is what nothing in it imports."""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from importlib import metadata
from pathlib import Path

ROOT = Path(__file__).parents[2]
DOCKERFILE = (ROOT / "Dockerfile").read_text(encoding="utf-8")
LOCK = (ROOT / "requirements.lock").read_text(encoding="utf-8")
#: The packages that the Dockerfile uninstalls, in Python's spelling.
REMOVED = set(
    re.findall(
        r"[a-z][a-z-]+",
        DOCKERFILE.partition(" uninstall --quiet --yes ")[2].partition("&&")[0],
    )
)
#: The parts of the Kubernetes client of which at most `__init__.py` is left.
REMOVED_MODULES = ("kubernetes.aio", "kubernetes.client.api.", "kubernetes.client.models.")
#: Packages that require removed ones, but only for these modules of theirs.
ONLY_FOR = {
    "kubernetes": {"kubernetes.aio"},
    "rich": {"rich.markdown", "rich.syntax", "rich.traceback"},
}
_PROGRAM = """
import importlib, json, pkgutil, sys
import certs, webhook
for package in (webhook, certs):
    for module in pkgutil.walk_packages(package.__path__, package.__name__ + "."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)
exec(sys.argv[1])
print(json.dumps(sorted(sys.modules)))
"""


@cache
def _imported() -> frozenset[str]:
    """Return the modules that the product can import: all its own, and all that these name."""
    argv = [sys.executable, "-c", _PROGRAM, "\n".join(_imports())]
    ran = subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, check=True)
    return frozenset(json.loads(ran.stdout))


def _imports() -> Iterator[str]:
    """Yield each import of a third party's module, also those within functions."""
    known = {*sys.stdlib_module_names, "webhook", "certs"}
    for file in (path for name in ("webhook", "certs") for path in (ROOT / name).rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            match node:
                case ast.ImportFrom(module=str(name)):
                    names = {name}
                case ast.Import(names=aliases):
                    names = {alias.name for alias in aliases}
                case _:
                    continue
            if not {name.partition(".")[0] for name in names} & known:
                yield ast.unparse(node)


def _locked() -> set[str]:
    return set(re.findall(r"^([a-z][a-z0-9.-]*)==", LOCK, re.MULTILINE))


def _required(package: str) -> set[str]:
    """Return the packages that one requires, extras left out."""
    lines = metadata.requires(package) or []
    names = (re.match(r"[\w.-]+", line) for line in lines if "extra ==" not in line)
    return {name[0].lower().replace("_", "-") for name in names if name}


def test_removed_packages_are_those_of_the_lock() -> None:
    """A name that is not in the lock would be a mistake, and pip would only warn about it."""
    assert {"aiohttp", "setuptools"} <= REMOVED <= _locked()


def test_nothing_imports_what_is_removed() -> None:
    """No module of the webhook, and nothing that it imports, needs a removed package or module."""
    assert "webhook.serve.server" in _imported()
    packages = metadata.packages_distributions()
    tops = {name.partition(".")[0] for name in _imported()}
    distributions = {name.lower() for top in tops for name in packages.get(top, ())}
    # An editable install imports setuptools' hook for distutils when Python starts.
    assert REMOVED & distributions <= {"setuptools"}
    assert "setuptools" not in tops
    assert [name for name in _imported() if name.startswith(REMOVED_MODULES)] == []


def test_the_rest_does_not_require_what_is_removed() -> None:
    """Of the packages that stay, only those require removed ones that do so for unused modules."""
    needing = {name for name in _locked() - REMOVED if _required(name) & REMOVED}
    assert needing == set(ONLY_FOR)
    assert not _imported() & set().union(*ONLY_FOR.values())


def test_the_modules_of_rich_that_need_them_are_known() -> None:
    """Other modules of rich import pygments and markdown-it only through these, on demand."""
    folder = Path(str(metadata.distribution("rich").locate_file("rich")))
    needing = {
        f"rich.{file.stem}"
        for file in folder.glob("*.py")
        if re.search(r"^from (pygments|markdown_it)", file.read_text("utf-8"), re.MULTILINE)
    }
    assert needing == ONLY_FOR["rich"]
