"""A folder for commands that read from an API server over HTTP."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.command_line import Answer, run_command
from tests.integration.answers_api import AnswersApi
from tests.integration.kubeconfig import KUBECONFIG


class CommandRunner(NamedTuple):
    """A folder with a kubeconfig, and the command that is run with given first arguments."""

    api: AnswersApi
    folder: Path
    words: tuple[str, ...]

    @property
    def kubeconfig(self) -> Path:
        """The kubeconfig of the API server, which is the current one."""
        return self.folder / "config"

    def run(self, *arguments: object) -> Answer:
        """Run the command."""
        return run_command(*self.words, *arguments)

    def form(self, *arguments: object) -> dict[str, Any]:
        """Run the command with -o json."""
        return self.run("-o", "json", *arguments).form

    def file(self, name: str, text: str) -> str:
        """Write a file, and return its name."""
        (self.folder / name).write_text(text)
        return str(self.folder / name)


@contextmanager
def command_runner(
    folder: Path, answers: dict[str, Any], *words: str, namespace: str = "default"
) -> Iterator[CommandRunner]:
    """Serve answers while the block runs; the kubeconfig's context has this `namespace`."""
    with AnswersApi(answers) as api, pytest.MonkeyPatch.context() as patch:
        runner = CommandRunner(api, folder, words)
        text = KUBECONFIG % api.port
        runner.kubeconfig.write_text(text.replace("user: u}", f"user: u, namespace: {namespace}}}"))
        patch.setenv("KUBECONFIG", str(runner.kubeconfig))
        patch.setenv("COLUMNS", "160")
        patch.delenv("RDMA_WEBHOOK_CONFIG", raising=False)
        yield runner
