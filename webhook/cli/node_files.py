"""Read the output of tools on nodes: files, folders with one entry per node, standard input."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from webhook.cli.inputs import STDIN, read_error, read_input
from webhook.diagnose.discover.inputs import NodeText
from webhook.errors import DocumentError

#: Bytes of a text; the whole output of a node is a few hundred kilobytes.
_MAX_TEXT = 64 << 20
#: Bytes of a file in a copied sysfs tree, and the number of such files.
_MAX_SYSFS_FILE, _MAX_SYSFS_FILES = 4096, 50_000
_ENDINGS = frozenset({".txt", ".log", ".out", ".text", ".json", ".yaml", ".yml"})
#: The path on the node, as part of a path in a copied tree.
_ON_NODE = re.compile(r"(?:^|/)((?:sys|proc)/.+)")
_DEVICE_FILE = re.compile(
    r"[\w.-]{1,64}/(?:ports/\d{1,3}/.+|fw_ver|board_id|hca_type|node_guid|device/.+)"
)


def texts_of_node(given: str) -> Iterator[NodeText]:
    """Yield the texts of a file, of a node's folder, or of standard input (-)."""
    if given == "-":
        yield NodeText(STDIN, "stdin", _decode(read_input(given, _MAX_TEXT), STDIN))
        return
    path = Path(given)
    try:
        is_folder = path.is_dir()
    except (OSError, ValueError) as error:
        raise read_error(given, error) from None
    if is_folder:
        yield from _of_folder(path)
    else:
        yield NodeText(given, _stem(path), _text(given))


def texts_of_nodes(directory: str) -> Iterator[NodeText]:
    """Yield the texts of all nodes in a directory, which has a file or a folder for each."""
    try:
        entries = sorted(Path(directory).iterdir())
    except (OSError, ValueError) as error:
        raise read_error(directory, error) from None
    nodes = [entry for entry in entries if not entry.name.startswith(".")]
    if not nodes:
        raise DocumentError(f"{directory}: is empty; expected a file or directory for each node")
    for entry in nodes:
        yield from texts_of_node(str(entry))


def _of_folder(folder: Path) -> Iterator[NodeText]:
    """Yield the texts of a node: outputs of tools, and a copied sysfs tree as one text."""
    node = folder.name
    tree: list[str] = []
    paths = [*_files(folder)]
    if not paths:
        raise DocumentError(f"{folder}: is empty; expected files with the output of tools")
    for path in paths:
        relative = path.relative_to(folder).as_posix()
        on_node = _on_node(relative)
        if on_node is None:
            yield NodeText(str(path), node, _text(str(path)))
        else:
            value = _sysfs_value(path)
            tree += (f"{on_node}:{line}" for line in value.splitlines() if line.strip())
    if tree:
        yield NodeText(str(folder), node, "\n".join(tree) + "\n")


def _files(folder: Path) -> Iterable[Path]:
    paths: list[Path] = []
    for parent, folders, names in os.walk(folder):
        folders.sort()
        paths += (Path(parent, name) for name in sorted(names) if not name.startswith("."))
        if len(paths) > _MAX_SYSFS_FILES:
            raise DocumentError(
                f"{folder}: contains more than {_MAX_SYSFS_FILES:,} files; copy only "
                "/sys/class/infiniband, or use rdma-webhook discover script"
            )
    return (path for path in paths if path.is_file())


def _on_node(relative: str) -> str | None:
    """Return the path on the node of a file in a copied tree; None for another file."""
    if match := _ON_NODE.search(relative):
        return f"/{match[1]}"
    for prefix in ("class/infiniband/", "infiniband/", ""):
        device_file = relative.removeprefix(prefix)
        if relative.startswith(prefix) and _DEVICE_FILE.fullmatch(device_file):
            return f"/sys/class/infiniband/{device_file}"
    return None


def _sysfs_value(path: Path) -> str:
    """Return the content of a small file of sysfs; "" if it cannot be read, even as root."""
    try:
        with path.open("rb") as file:
            return file.read(_MAX_SYSFS_FILE).decode("utf-8", "replace")
    except OSError:
        return ""


def _text(name: str) -> str:
    return _decode(read_input(name, _MAX_TEXT), name)


def _decode(data: bytes, name: str) -> str:
    """Decode the output of tools; replace bytes in another encoding."""
    if len(data) > _MAX_TEXT:
        raise DocumentError(
            f"{name}: is larger than {_MAX_TEXT >> 20} MiB; pass a file for each node"
        )
    if data[:2] in (b"\xff\xfe", b"\xfe\xff"):
        return data.decode("utf-16", "replace")
    return data.decode("utf-8-sig", "replace")


def _stem(path: Path) -> str:
    return path.stem if path.suffix.lower() in _ENDINGS else path.name
