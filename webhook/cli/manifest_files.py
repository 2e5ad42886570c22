"""Read the manifests that a command line names: files, directories and standard input.

A directory may also have files of kustomize and Helm. A file there that is not a Kubernetes object,
or is a template, is skipped with a note. Such a file on the command line is an error.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NoReturn

from webhook.cli.inputs import read_error, read_input, shown_name
from webhook.cli.output import print_message
from webhook.errors import DocumentError, NotKubernetesError
from webhook.model.names import counted
from webhook.preview.dry_run import unsupported_reason
from webhook.text.yaml.documents import DOCUMENT_LIMITS, Document, read_documents

#: The files read from a directory, as kubectl does.
_SUFFIXES = frozenset({".yaml", ".yml", ".json"})
_KUSTOMIZATIONS = ("kustomization.yaml", "kustomization.yml", "Kustomization")
_CHART = "Chart.yaml"
#: Files that mark a directory of kustomize or Helm; they are skipped without a note.
_TOOL_FILES = frozenset({*_KUSTOMIZATIONS, _CHART})


class ManifestFiles:
    """The documents of the files; errors are printed, and `unreadable` is then True."""

    def __init__(self, given: Sequence[str], *, recursive: bool) -> None:
        """Read each file once; `recursive`: also the subdirectories of directories."""
        self.documents: list[Document] = []
        self.unreadable = False
        self._names: list[str] = []
        self._read_paths: set[str] = set()
        self._build_hints: list[str] = []  # for directories of kustomize and Helm
        for name in given:
            self._take(name, recursive=recursive)
        if self.documents:
            for hint in self._build_hints:
                print_message("note", hint)

    @property
    def no_documents_message(self) -> str:
        """The error message for inputs without documents."""
        if not self._names:
            return "; ".join(self._build_hints)
        first, *following = self._names
        if not following:
            return f"{first} contains no documents"
        return f"{first} and {counted(len(following), 'other input')} contain no documents"

    def _take(self, given: str, *, recursive: bool) -> None:
        try:
            names = _list_directory(given, recursive=recursive)
        except DocumentError as error:
            self._refuse(error)
            return
        for name in [given] if names is None else names:
            self._read(name, listed=names is not None)
        if names is not None:
            if not recursive:
                _note_unread_subdirectories(Path(given))
            folders = dict.fromkeys([Path(given), *(Path(name).parent for name in names)])
            self._build_hints += filter(None, dict.fromkeys(map(_build_hint, folders)))

    def _read(self, name: str, *, listed: bool) -> None:
        """Read a file unless it was read before; `listed` marks the files of a directory."""
        path = name if name == "-" or "\0" in name else os.path.realpath(name)
        if path in self._read_paths or (listed and Path(name).name in _TOOL_FILES):
            return
        self._read_paths.add(path)
        try:
            documents = _documents(name)
        except NotKubernetesError as error:
            if listed:
                print_message("note", f"skipped: {error}")
                return
            hint = "" if name == "-" else _build_hint(Path(name).parent)
            self._refuse(DocumentError(f"{error} ({hint})" if hint else str(error)))
        except DocumentError as error:
            self._refuse(error)
        else:
            self._names.append(shown_name(name))
            self.documents.extend(documents)

    def _refuse(self, error: DocumentError) -> None:
        print_message("error", str(error))
        self.unreadable = True


def _list_directory(name: str, *, recursive: bool) -> list[str] | None:
    """Return the manifests in a directory; None for anything else."""
    folder = Path(name)
    try:
        if name == "-" or not folder.is_dir():
            return None
        manifests = list(_manifests(folder, recursive=recursive))
    except OSError as error:
        raise read_error(name, error) from None
    if not manifests and not _build_hint(folder):
        nested = not recursive and any(path.is_dir() for path in folder.iterdir())
        hint = "; to read its subdirectories, add -R" if nested else ""
        raise DocumentError(f"{name}: no .yaml, .yml or .json file in this directory{hint}")
    return manifests


def _note_unread_subdirectories(folder: Path) -> None:
    """Print how many subdirectories -R would read; those of Helm and kustomize have other hints."""
    subdirectories = [
        path.name for path in folder.iterdir() if path.is_dir() and not path.is_symlink()
    ]
    number = sum(not name.startswith(".") for name in subdirectories)
    if number and not _build_hint(folder):
        noun = "subdirectory" if number == 1 else "subdirectories"
        print_message("note", f"{folder}: {number:,} {noun} not read; -R reads them")


def _manifests(folder: Path, *, recursive: bool) -> Iterator[str]:
    for parent, folders, names in os.walk(folder, onerror=_raise):
        folders.sort()
        yield from (
            str(Path(parent, name)) for name in sorted(names) if Path(name).suffix in _SUFFIXES
        )
        if not recursive:
            return


def _raise(error: OSError) -> NoReturn:
    raise error


def _build_hint(folder: Path) -> str:
    """Return how to preview a directory of kustomize or Helm; "" for any other."""
    for chart in (folder, folder.parent):
        if Path(chart, _CHART).is_file():
            command = f"helm template {shlex.quote(str(chart))} | rdma-webhook preview -"
            return f"{chart} is a Helm chart; run {command}"
    if any(Path(folder, name).is_file() for name in _KUSTOMIZATIONS):
        command = f"kustomize build {shlex.quote(str(folder))} | rdma-webhook preview -"
        return f"{folder} is built by kustomize; run {command}"
    return ""


def _documents(name: str) -> list[Document]:
    """Read one input; DocumentError also if it has a document that cannot be previewed."""
    data = read_input(name, DOCUMENT_LIMITS.size)
    documents = read_documents(data) if name == "-" else read_documents(data, name)
    for document in documents:
        if reason := unsupported_reason(document):
            raise NotKubernetesError(reason)
    return documents
