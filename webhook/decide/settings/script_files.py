"""The files of ConfigMaps that a container's command names, such as the script that it runs.

The words `bash /scripts/entry.sh` name a file below the mountPath `/scripts`, and so may the text
of such a file. Names that the shell expands are not resolved, nor are relative ones.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

from webhook.decide.settings.mounted_files import (
    FileText,
    config_map_mounts,
    mounted_file,
)
from webhook.decide.settings.setting import Setting
from webhook.decide.settings.terms import mentions
from webhook.decide.shell.argv import Word, basename, shell_operand
from webhook.decide.shell.scripts import MAX_CHARACTERS
from webhook.errors import ShapeError
from webhook.model.config_maps import ConfigMaps, DataKey
from webhook.model.pod import Container, Path, Pod, PodManifest
from webhook.model.pod.volumes import clean

#: The variable with the script that bash reads before any other (bash(1), INVOCATION).
BASH_ENV = "BASH_ENV"
#: The most mounts of a container, and words of a pod in their directories, that are considered.
_MAX_MOUNTS, _MAX_WORDS = 32, 64
_NO_FILE = FileText("", None)
#: The part of a path after a mountPath.
_BELOW = re.compile(r"[\w.@+/-]*+")
#: A character before a mountPath that shows that both are part of a longer word, so another path.
_BEFORE_IN_WORD = re.compile(r"[\w.~}-]")
_SHELL = re.compile(r"#![ ]?(?:/\S*/)?(?:env[ ]+(?:-S[ ]+)?)?((?:ba|da|z|k|a)?sh)\b")


class ScriptFile(NamedTuple):
    """A file that a command names."""

    key: DataKey
    text: str | None  #: None if it is not known

    @property
    def place(self) -> str:
        """The place of its words, as in the source of a setting."""
        return f"in {self.key.title}"

    @property
    def is_shell(self) -> bool:
        """Whether a shell runs it if it is a program; also without a first line that names one."""
        return not self.text or self.text[:2] != "#!" or _SHELL.match(self.text) is not None

    @property
    def names_bash(self) -> bool:
        """Whether its first line names bash."""
        shell = _SHELL.match(self.text or "")
        return shell is not None and shell[1] == "bash"


class Script(NamedTuple):
    """A script that a shell runs."""

    text: Word
    arguments_start: int  #: the index of the first word of its arguments
    by_bash: bool  #: whether the shell is bash, not as `sh`
    file: ScriptFile | None = None  #: None for `sh -c`


#: The files by the words that name them.
ScriptFiles = Mapping[str, ScriptFile]
NO_FILES: ScriptFiles = MappingProxyType({})


def files_of_pod(pod: Pod, config_maps: ConfigMaps) -> dict[Path, ScriptFiles]:
    """Return the files that the command of each container names, and that such files name.

    All share the limit on words; app containers come first.
    """
    files: dict[Path, ScriptFiles] = {}
    room = _MAX_WORDS
    containers = pod.containers if pod.config_map_volumes else ()
    for container in sorted(containers, key=lambda container: container.kind != "app"):
        files[container.path] = script_files(pod, container, config_maps, room)
        room -= len(files[container.path])
    return files


def script_files(
    pod: Pod, container: Container, config_maps: ConfigMaps, max_words: int = _MAX_WORDS
) -> ScriptFiles:
    """Return the files that a container's command names, and the files that these name."""
    paths = [path for path, _ in config_map_mounts(pod, container)][:_MAX_MOUNTS]
    texts = [container.command_text, container.env.get(BASH_ENV) or ""] if paths else []
    files: dict[str, ScriptFile | None] = {}
    while texts:
        for word in _words(texts.pop(), paths):
            if word not in files and len(files) < max_words:
                file = files[word] = _file(pod, container, word, config_maps)
                texts += [file.text] if file and file.text else []
    return {word: file for word, file in files.items() if file} or NO_FILES


def script_of(words: Sequence[Word], index: int, files: ScriptFiles) -> Script | None:
    """Return the script that a shell at `index` runs, or that a file there is; or None."""
    by_bash = basename(words[index] or "") == "bash"
    operand = shell_operand(words, index)
    if operand is not None and operand.is_script:
        return Script(words[operand.position], operand.position + 2, by_bash)
    place = index if operand is None else operand.position
    file = files.get(words[place] or "")
    if file is None or (operand is None and not file.is_shell):
        return None
    return Script(file.text, place + 1, by_bash or (operand is None and file.names_bash), file)


def _file(pod: Pod, container: Container, word: str, config_maps: ConfigMaps) -> ScriptFile | None:
    """Return the file that a word names, if a ConfigMap has it."""
    mounted = mounted_file(pod, container, clean(word))
    text, key = mounted.read(config_maps) if mounted else _NO_FILE
    return None if key is None else ScriptFile(key, text)


def config_maps_with_scripts(manifest: PodManifest) -> Iterator[str]:
    """Yield the names of the ConfigMaps that have such files; none for a malformed pod.

    A file may name others, so all ConfigMaps count that a container mounts if it names any.
    """
    try:
        pod = Pod(manifest)
        for path, files in files_of_pod(pod, {}).items():
            for _, config_maps in config_map_mounts(pod, pod.container(path)) if files else ():
                yield from config_maps
    except ShapeError:
        return


def mentions_in(files: ScriptFiles, known_names: set[str]) -> Iterator[Setting]:
    """Yield settings that the files seem to make, as `mentions`."""
    for file in dict.fromkeys(files.values()):
        for setting in mentions(file.text or "", known_names):
            yield setting.moved(file.place, file.key)


def _words(text: str, paths: list[str]) -> Iterator[str]:
    """Yield the words of a text that may be files below one of the paths."""
    for path in paths if len(text) <= MAX_CHARACTERS else ():
        offset = text.find(path)
        while offset >= 0:
            below = _BELOW.match(text, offset + len(path))
            assert below is not None
            if not offset or _BEFORE_IN_WORD.match(text, offset - 1) is None:
                yield text[offset : below.end()]
            offset = text.find(path, below.end())
