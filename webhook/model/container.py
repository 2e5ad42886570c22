"""The environment that a container's manifest spells out."""

from __future__ import annotations

from typing import Any

from webhook.model.path import Path
from webhook.model.pod import PodManifest, items, sequence, text


def env_of(pod: PodManifest, path: Path) -> dict[str, str | None]:
    """Return the `env` of the container at `path`: name → literal value, in the pod's order.

    None stands for a value that only the kubelet knows: a `valueFrom`, or a value that
    `literal` rejects. As in Kubernetes, an absent or null value is "", and of several
    entries with the same name the last one wins.
    """
    where = (*path, "env")
    listed = items(pod, where)
    found = _plain(listed)
    return _of_any(listed, where) if found is None else found


def _plain(listed: list[dict[str, Any]]) -> dict[str, str | None] | None:
    """Read items if each is a unique name with a literal string, as nearly all pods' are."""
    try:
        found = {item["name"]: item["value"] for item in listed}
        complete = len(listed) == len(found) and sum(map(len, listed)) == 2 * len(found)
        return found if complete and "$" not in "".join((*found, *found.values())) else None
    except (KeyError, TypeError):  # a key is missing, or something is not a string
        return None


def _of_any(listed: list[dict[str, Any]], where: Path) -> dict[str, str | None]:
    found: dict[str, str | None] = {}
    for index, item in enumerate(listed):
        name, value = (text(item, (key,), (*where, index)) for key in ("name", "value"))
        if name is None:
            continue  # the API server rejects it, with a better message
        known = item.get("valueFrom") is None
        found[name] = literal(value or "") if known else None
    return found


class Environments:
    """The `env` of a pod's containers as the user wrote them, each read once."""

    __slots__ = ("_found", "_has_env_from", "_pod")

    def __init__(self, pod: PodManifest) -> None:
        self._pod = pod
        self._found: dict[Path, dict[str, str | None]] = {}
        self._has_env_from: dict[Path, bool] = {}

    def of(self, path: Path) -> dict[str, str | None]:
        """Return the `env` of the container at `path`; see `env_of`."""
        found = self._found.get(path)
        if found is None:
            found = self._found[path] = env_of(self._pod, path)
        return found

    def has_env_from(self, path: Path) -> bool:
        """Return whether it uses `envFrom`, so that its manifest does not list all names."""
        found = self._has_env_from.get(path)
        if found is None:
            found = self._has_env_from[path] = bool(sequence(self._pod, (*path, "envFrom")))
        return found


def env_names(manifest: dict[str, Any]) -> list[str]:
    """List the names in a container's `env`."""
    names = [item.get("name") for item in items(manifest, ("env",))]
    return [name for name in names if isinstance(name, str)]


def literal(value: str) -> str | None:
    """Return a value as the process sees it, or None if the kubelet would change it.

    The kubelet expands `$(NAME)` and `$$` (third_party/forked/golang/expansion).
    """
    return None if "$(" in value or "$$" in value else value


def entry(name: str, value: str) -> dict[str, str]:
    """Return a variable as an item of `env`."""
    return {"name": name, "value": value}
