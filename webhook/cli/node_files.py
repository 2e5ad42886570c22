"""Read what tools printed on nodes: files, folders with one entry per node, standard input."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from webhook.cli.output import read_stdin, unreadable
from webhook.diagnose.discover.inputs import NodeText
from webhook.errors import DocumentError

#: Of one text; a node's whole output is some hundred kilobytes.
_MOST = 64 << 20
#: Of one file of a copied sysfs tree, and of how many such files.
_SYSFS_FILE, _SYSFS_FILES = 4096, 50_000
_ENDINGS = frozenset({".txt", ".log", ".out", ".text", ".json", ".yaml", ".yml"})
#: In a copied tree, a part of the path as on the node.
_ON_NODE = re.compile(r"(?:^|/)((?:sys|proc)/.+)")
_DEVICE_FILE = re.compile(
    r"[\w.-]{1,64}/(?:ports/\d{1,3}/.+|fw_ver|board_id|hca_type|node_guid|device/.+)"
)
_STDIN = "<stdin>"


def texts_of(given: str) -> Iterator[NodeText]:
    """Yield the texts of a file, of a node's folder, or of standard input (-)."""
    if given == "-":
        yield NodeText(_STDIN, "stdin", _decoded(read_stdin(_MOST + 1), _STDIN))
        return
    path = Path(given)
    try:
        folder = path.is_dir()
    except (OSError, ValueError) as error:
        raise unreadable(given, error) from None
    if folder:
        yield from _of_folder(path)
    else:
        yield NodeText(given, _stem(path), _text(path))


def texts_in(directory: str) -> Iterator[NodeText]:
    """Yield the texts of all nodes in a directory, which has a file or a folder for each."""
    try:
        entries = sorted(Path(directory).iterdir())
    except (OSError, ValueError) as error:
        raise unreadable(directory, error) from None
    shown = [entry for entry in entries if not entry.name.startswith(".")]
    if not shown:
        raise DocumentError(f"{directory}: is empty: expected a file or a folder for each node")
    for entry in shown:
        yield from texts_of(str(entry))


def _of_folder(folder: Path) -> Iterator[NodeText]:
    """Yield the texts of a node: outputs of tools, and a copied sysfs tree as one text."""
    node = folder.name
    tree: list[str] = []
    paths = [*_files(folder)]
    if not paths:
        raise DocumentError(f"{folder}: is empty: expected files with the output of tools")
    for path in paths:
        relative = path.relative_to(folder).as_posix()
        on_node = _on_node(relative)
        if on_node is None:
            yield NodeText(str(path), node, _text(path))
        else:
            value = _sysfs_value(path)
            tree += (f"{on_node}:{line}" for line in value.splitlines() if line.strip())
    if tree:
        yield NodeText(str(folder), node, "\n".join(tree) + "\n")


def _files(folder: Path) -> Iterable[Path]:
    found: list[Path] = []
    for parent, folders, names in os.walk(folder):
        folders.sort()
        found += (Path(parent, name) for name in sorted(names) if not name.startswith("."))
        if len(found) > _SYSFS_FILES:
            raise DocumentError(
                f"{folder}: holds more than {_SYSFS_FILES:,} files: copy only "
                "/sys/class/infiniband, or use rdma-webhook discover script"
            )
    return (path for path in found if path.is_file())


def _on_node(relative: str) -> str | None:
    """Return the path that a file of a copied tree has on the node; None for another file."""
    if found := _ON_NODE.search(relative):
        return f"/{found[1]}"
    for above in ("class/infiniband/", "infiniband/", ""):
        rest = relative.removeprefix(above)
        if relative.startswith(above) and _DEVICE_FILE.fullmatch(rest):
            return f"/sys/class/infiniband/{rest}"
    return None


def _sysfs_value(path: Path) -> str:
    """Return a small file of sysfs; "" where it cannot be read, as some cannot even by root."""
    try:
        with path.open("rb") as file:
            return file.read(_SYSFS_FILE).decode("utf-8", "replace")
    except OSError:
        return ""


def _text(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return _decoded(file.read(_MOST + 1), str(path))
    except (OSError, ValueError) as error:
        raise unreadable(str(path), error) from None


def _decoded(data: bytes, name: str) -> str:
    """Decode the output of tools; a character in another encoding harms no other."""
    if len(data) > _MOST:
        raise DocumentError(
            f"{name}: is larger than {_MOST >> 20} MiB: give one file for each node"
        )
    if data[:2] in (b"\xff\xfe", b"\xfe\xff"):
        return data.decode("utf-16", "replace")
    return data.decode("utf-8-sig", "replace")


def _stem(path: Path) -> str:
    return path.stem if path.suffix.lower() in _ENDINGS else path.name
