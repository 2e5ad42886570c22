"""The third-party packages that a command loads; its start waits for each of them."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

from tests.integration.test_cli import FABRICS, POD

_ROOT = Path(__file__).parents[2]
#: Prints the loaded packages when the command ends.
_PROGRAM = """\
import sys
from webhook.cli import main
code = main(sys.argv[1:])
print(code, *{name.partition(".")[0] for name in sys.modules}, file=sys.stderr)
"""
_EVERY = {
    "annotated_types",
    "orjson",
    "pydantic",
    "pydantic_core",
    "typing_extensions",
    "typing_inspection",
    "yaml",
}
_PREVIEW = _EVERY | {"jsonpatch", "jsonpointer"}
_SERVE = _EVERY | {
    "annotated_doc",
    "anyio",
    "click",
    "cryptography",
    "fastapi",
    "httptools",
    "opentelemetry",
    "prometheus_client",
    "starlette",
    "uvicorn",
    "uvloop",
}


def _installed_packages() -> set[str]:
    """Return the packages of the distributions in requirements.lock.

    Others are not in the image, and libraries load some of them where they are installed. Names
    that begin with `_` are parts of another package.
    """
    lock = (_ROOT / "requirements.lock").read_text("utf-8")
    locked = {_normalized(name) for name in re.findall(r"^([\w.-]+)==", lock, re.MULTILINE)}
    return {
        package
        for package, distributions in packages_distributions().items()
        if not package.startswith("_") and not locked.isdisjoint(map(_normalized, distributions))
    }


def _normalized(distribution: str) -> str:
    """Return the name as indexes compare it (PEP 503)."""
    return re.sub(r"[-_.]+", "-", distribution).lower()


def _loaded(errors: str) -> set[str]:
    """Return the third-party packages that a command reports (1 is a negative answer)."""
    code, *names = errors.splitlines()[-1].split()
    assert code in ("0", "1"), errors
    return set(names) & _installed_packages()


@pytest.mark.parametrize(
    ("arguments", "packages"),
    [
        (["preview", *FABRICS, "-o", "text", "-"], _PREVIEW | {"rich"}),
        (["preview", *FABRICS, "-o", "json", "-"], _PREVIEW),
        (["preview", *FABRICS, "-o", "yaml", "-"], _PREVIEW),
        (["why", "NotOptedIn"], _EVERY | {"rich"}),
        (["why", "-f", "-"], _EVERY | {"rich"}),
    ],
    ids=["preview text", "preview json", "preview yaml", "why code", "why file"],
)
def test_packages_of_a_command(arguments: list[str], packages: set[str]) -> None:
    """A command loads exactly the packages that it needs."""
    done = subprocess.run(
        [sys.executable, "-c", _PROGRAM, *arguments],
        input=POD, capture_output=True, check=True, text=True, timeout=300, cwd=_ROOT,
    )  # fmt: skip
    assert _loaded(done.stderr) == packages


def test_packages_of_the_server(tmp_path: Path) -> None:
    """A server that is ready has loaded no client of a cluster, and no package for a terminal."""
    ports = ("--port", "0", "--preview-port", "0", "--health-port", "0", "--page-port", "0")
    with subprocess.Popen(
        [sys.executable, "-c", _PROGRAM, "serve", "--dev", *ports],
        cwd=_ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        env={**os.environ, "XDG_STATE_HOME": str(tmp_path)},
    ) as process:  # fmt: skip
        assert process.stdout
        for line in process.stdout:
            if "rdma-webhook is ready" in line:
                process.terminate()
        assert process.stderr
        assert _loaded(process.stderr.read()) == _SERVE
