"""The output of experiments, kept in .cache/experiments for the quotes in docs/evidence.md."""

from __future__ import annotations

import shlex
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
_HOME = ROOT / ".cache" / "experiments"


def keep(name: str, share: Path) -> None:
    """Keep the texts that a machine left in the folder that it shared."""
    folder = _folder(name)
    for path in sorted(share.iterdir()):
        if path.suffix in (".txt", ".json", ".log", ".events"):
            shutil.copy(path, folder)


class Transcript:
    """A file of commands and their output, as in a terminal."""

    def __init__(self, name: str) -> None:
        self._file = _folder(name) / "transcript.txt"

    def add(self, command: str, printed: str) -> None:
        """Add a command and its output."""
        with self._file.open("a", encoding="utf-8") as file:
            file.write(f"$ {command}\n{printed.rstrip()}\n\n")

    def run(self, *words: str | Path, text: str | None = None) -> str:
        """Run rdma-webhook as a user does, add it, and return its output."""
        ran = rdma_webhook(*words, text=text)
        printed = ran.stdout + ran.stderr
        self.add(f"rdma-webhook {shlex.join(map(str, words))}", f"{printed}[{ran.returncode}]")
        return printed


def rdma_webhook(*words: str | Path, text: str | None = None) -> subprocess.CompletedProcess[str]:
    """Run the command line as a user does."""
    argv = [sys.executable, "-m", "webhook", *words]
    return subprocess.run(argv, input=text, capture_output=True, text=True, check=False)


def _folder(name: str) -> Path:
    """Return an empty folder."""
    folder = _HOME / name
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    return folder
