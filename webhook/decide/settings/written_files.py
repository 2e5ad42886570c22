"""The files that a command writes, as its text shows: whether it writes any, and NCCL's.

A redirection, `tee` and copying write files. Only their words count; nothing is run.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from webhook.decide.shell.argv import basename

#: The ends of the paths that NCCL and RCCL read: /etc/nccl.conf, ~/.nccl.conf.
_NCCL_FILES = ("nccl.conf", "rccl.conf")
#: Where that file may be, for a copy into a folder.
_FOLDERS = frozenset({"/etc", "~", "/root", "$HOME"})
#: `>FILE` and `>>FILE`, but not `2>FILE`, `>&2` or `>(…)`; and the first file of `tee`.
_TARGET = re.compile(
    r"(?<![2>])>{1,2}+[|]?[ \t]*+[\"']?+(?P<redirected>[^\s\"';&|<>()]++)"
    r"|\btee\s++(?:-\w++\s++)*+[\"']?+(?P<teed>[^\s\"';&|<>()]++)"
)
#: Files that keep nothing.
_STREAMS = ("/dev/", "/proc/")
_COPYING = frozenset({"cp", "install", "ln", "mv"})
#: Other programs, and functions of languages, that write files.
_WRITING = re.compile(r"\b(?:cp|dd|install|ln|mv|sed)\s|\bopen\(|\bwrite")
#: Programs that change files without new content.
_CHANGING = re.compile(r"\b(?:chmod|chown|rm|touch|truncate|unlink)\s")
#: Programs whose output the text of a command does not show, except that of a here-document.
_FILLING = frozenset({"awk", "base64", "cat", "curl", "envsubst", "jq", "python", "sed", "wget"})
#: What ends a simple command; a single `|` does not, since `tee` may write what another made.
_SEPARATORS = re.compile(r"(?:[;&\n]|\|\|)++")


def writes_files(text: str) -> bool:
    """Return whether a command seems to write a file."""
    return bool(_targets(text)) or _WRITING.search(text) is not None


def changes_files(text: str) -> bool:
    """Return whether a command seems to write, remove or otherwise change a file."""
    return writes_files(text) or _CHANGING.search(text) is not None


def writes_only_nccl_file(text: str) -> bool:
    """Return whether all that a command writes are files of NCCL, which never override `env`."""
    targets = _targets(text)
    only = bool(targets) and all(target.endswith(_NCCL_FILES) for target in targets)
    return only and _WRITING.search(text) is None


def _targets(text: str) -> list[str]:
    targets = (match["redirected"] or match["teed"] for match in _TARGET.finditer(text))
    return [target for target in targets if not target.startswith(_STREAMS)]


def file_filled_from_elsewhere(words: Iterable[str]) -> str:
    """Return NCCL's file if a command fills it with unknown content, as `cp` does; or ""."""
    text = " ".join(words)
    if not _nccl_file_in(text):
        return ""
    return next(filter(None, map(_filled, _SEPARATORS.split(text))), "")


def _filled(line: str) -> str:
    """Return NCCL's file if a simple command fills it with content that its text does not show."""
    words = [word.strip("\"'()") for word in line.split() if ">" not in word]
    programs = [basename(word) for word in words]
    if line.lstrip()[:1] == "#":
        return ""
    if not _COPYING.isdisjoint(programs[:-2]):
        into_folder = words[-1].rstrip("/") in _FOLDERS
        return _nccl_file_in(line) if into_folder else _first_nccl_file(words[-1:])
    filled = "<<" not in line and not _FILLING.isdisjoint(programs)
    return _first_nccl_file(_targets(line)) if filled else ""


def _first_nccl_file(paths: Iterable[str]) -> str:
    """Return the first of these paths that is NCCL's file, or ""."""
    return next((path for path in paths if path.endswith(_NCCL_FILES)), "")


def _nccl_file_in(text: str) -> str:
    """Return the name of NCCL's file that a text has, or ""."""
    return next((name for name in _NCCL_FILES if name in text), "")
