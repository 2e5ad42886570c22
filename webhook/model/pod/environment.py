"""The variables that a container's `env` spells out."""

from __future__ import annotations

from webhook.model.json import JsonObject
from webhook.model.pod.reading import Path, text


def env_of(listed: list[JsonObject], path: Path) -> dict[str, str | None]:
    """Return the variables in the `env` of the container at `path`: name → value, in its order.

    None stands for a value that only the kubelet knows: a `valueFrom`, or a value that
    `literal` rejects. As in Kubernetes, an absent or null value is "", and of several
    entries with the same name the last one wins.
    """
    found = _plain(listed)
    return _of_any(listed, (*path, "env")) if found is None else found


def _plain(listed: list[JsonObject]) -> dict[str, str | None] | None:
    """Read items if each is a unique name with a literal string, as nearly all pods' are."""
    try:
        found = {item["name"]: item["value"] for item in listed}
        complete = len(listed) == len(found) and sum(map(len, listed)) == 2 * len(found)
        return found if complete and "$" not in "".join((*found, *found.values())) else None
    except (KeyError, TypeError):  # a key is missing, or something is not a string
        return None


def _of_any(listed: list[JsonObject], where: Path) -> dict[str, str | None]:
    found: dict[str, str | None] = {}
    for index, item in enumerate(listed):
        name, value = (text(item, (key,), (*where, index)) for key in ("name", "value"))
        if name is None:
            continue  # the API server rejects it, with a better message
        known = item.get("valueFrom") is None
        found[name] = literal(value or "") if known else None
    return found


def literal(value: str) -> str | None:
    """Return a value as the process sees it, or None if the kubelet would change it.

    The kubelet expands `$(NAME)` and `$$` (third_party/forked/golang/expansion).
    """
    return None if "$(" in value or "$$" in value else value


def entry(name: str, value: str) -> dict[str, str]:
    """Return a variable as an item of `env`."""
    return {"name": name, "value": value}
