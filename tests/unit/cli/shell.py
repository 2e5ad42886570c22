"""Run commands of the program in a folder, and return what they print."""

from __future__ import annotations

import io
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

from webhook.cli import main

FABRICS = """\
apiVersion: rdma.lab/v1alpha1
kind: FabricConfiguration
spec:
  fabrics:
  - name: v100-ib
    match: {gpuResources: [nvidia.com/v100]}
    resources: [{name: rdma/rdma_v100}]
    linkLayer: InfiniBand
    hcas: [mlx5_0]
"""
POD = """\
apiVersion: v1
kind: Pod
metadata:
  name: trainer  # at night
  annotations: {rdma.lab/enable: "true"}
spec:
  containers:
  - name: main
    resources: {limits: {nvidia.com/v100: 1}}
"""
DENIED = POD.replace('"true"', '"yes"').replace("trainer", "denied")
SERVICE = "apiVersion: v1\nkind: Service\nmetadata: {name: web}\n"


class Answer(NamedTuple):
    """The exit code and the output of a command."""

    code: int
    out: str
    err: str


class Shell:
    """Runs commands in its own folder."""

    def __init__(self, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self._folder = folder
        self._capsys = capsys

    def file(self, name: str, text: str) -> str:
        """Write a file and return its name."""
        (self._folder / name).parent.mkdir(parents=True, exist_ok=True)
        (self._folder / name).write_text(text)
        return name

    def __call__(self, *arguments: str) -> Answer:
        """Run one command; a usage error of argparse is returned as an answer too."""
        try:
            code = main(arguments)
        except SystemExit as stop:
            code = int(stop.code or 0)
        written = self._capsys.readouterr()
        return Answer(code, written.out, written.err)

    def piped(self, text: str, *arguments: str) -> Answer:
        """Run a command with a text as its standard input."""
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text.encode())))
            return self(*arguments)
