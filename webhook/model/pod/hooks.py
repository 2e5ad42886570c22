"""The commands that the kubelet runs in a container besides its command: hook and probes.

The hook runs right after the container is created, but nobody guarantees that it runs before the
container's command (Kubernetes docs, Container Lifecycle Hooks). Each is a process of its own: what
it exports reaches no other, but the files that it writes do. The preStop hook runs at the end, and
is left out.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from webhook.model.json import JsonObject
from webhook.model.pod.reading import Path, at

_COMMANDS: dict[str, Path] = {
    "postStart hook": ("lifecycle", "postStart", "exec", "command"),
    **{
        probe: (probe, "exec", "command")
        for probe in ("startupProbe", "readinessProbe", "livenessProbe")
    },
}


class HookCommand(NamedTuple):
    """A command that runs next to that of the container."""

    name: str  #: "postStart hook" or such as "startupProbe"
    words: tuple[str, ...]

    @property
    def text(self) -> str:
        """All words, one per line."""
        return "\n".join(self.words)


def hook_commands(container: JsonObject) -> Iterator[HookCommand]:
    """Yield the hooks of an unparsed container; none that the API server would reject."""
    for name, path in _COMMANDS.items():
        words = at(container, path)
        if isinstance(words, list):
            texts = tuple(word for word in words if isinstance(word, str))
            if len(texts) == len(words):
                yield HookCommand(name, texts)
