"""A container's variables, as the kubelet computes them from `env`.

It reads `env` in order (makeEnvironmentVariables in pkg/kubelet/kubelet_pods.go). In a `value`,
`$(NAME)` is the value of a variable that `envFrom`, an earlier item or a Service defines; any other
`$(NAME)` stays as it is, and `$$` is an escaped `$` (third_party/forked/golang/expansion). A
`fieldRef` may read the pod's own metadata (pkg/fieldpath/fieldpath.go).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import NamedTuple

from webhook.model.json import Json, JsonObject
from webhook.model.pod.reading import Path, at, fields_or_empty, read_string

#: A container's variables: name → value, None if only the kubelet can determine it.
Variables = Mapping[str, str | None]

_REFERENCE = re.compile(r"\$(?:\$|\(([^)]*+)\))")
#: A field of the pod's metadata: `metadata.labels['app']`.
_METADATA = re.compile(r"metadata\.(labels|annotations)\['(.+)'\]")
#: Annotations that the webhook itself may write, so that they differ between two calls.
_WRITTEN_LATER = ("rdma.lab/", "k8s.v1.cni.cncf.io/", "ulimits.")
#: The names of variables that the kubelet makes of Services: TRAINER_SERVICE_HOST, TRAINER_PORT.
_OF_SERVICES = ("_SERVICE_HOST", "_PORT")
#: The maximum length, in characters, of a field that variables take their values from: all
#: containers of a pod may read the same annotation, whose length is not limited at admission.
_MAX_FIELD_LENGTH = 4096
#: The limit, in characters, on what references add to the values of a container, or to its
#: command: otherwise, a few short texts could make an endless one.
_MAX_GROWTH = 8192


class Sources(NamedTuple):
    """What a container's variables come from, besides the literal values in `env`."""

    #: The variables of `envFrom` that are known.
    known_from_env_from: Variables
    #: Whether `envFrom` may define more.
    env_from_has_more: bool
    #: Return the value of a `valueFrom`, or None.
    read: Callable[[object], str | None]


class _Expansion:
    """The expansion of texts with the same variables, up to a common growth."""

    def __init__(self) -> None:
        self._left = _MAX_GROWTH

    def expand(self, written: str, value_of: Callable[[str], str | None]) -> str | None:
        """Return a text with the values of its references; None if one is unknown, or too long."""
        if "$" not in written:
            return written
        parts, rest = _split(written)
        references = parts[1::2]
        values = {name: "$" if name is None else value_of(name) for name in set(references)}
        known = {name: value for name, value in values.items() if value is not None}
        if len(known) < len(values):
            return None
        for name, count in Counter(references).items():
            self._left -= count * (len(known[name]) - _length(name))
        if self._left < 0:
            return None
        parts[1::2] = map(known.__getitem__, references)
        return "".join((*filter(None, parts), rest.replace("$$", "$")))


def _split(written: str) -> tuple[list[str | None], str]:
    """Return a text up to its last reference, and the rest.

    The names of references are in between the other parts; None for `$$`.
    """
    end = written.rfind(")") + 1  # no reference is after it, so none is searched for in vain
    return _REFERENCE.split(written[:end]), written[end:]


def _length(name: str | None) -> int:
    """Return the length of a reference, `$(NAME)` or `$$`."""
    return len("$$") if name is None else len(name) + len("$()")


def variables_of(
    env_items: Iterable[JsonObject], path: Path, sources: Sources
) -> dict[str, str | None]:
    """Return the variables in the `env` of the container at `path`: name → value, in its order.

    As in Kubernetes, an absent or null value is "", and of several items with the same name the
    last one wins.
    """
    variables: dict[str, str | None] = {}
    expansion, value_of = _Expansion(), partial(_value_of, variables, sources)
    for index, item in enumerate(env_items):
        name = read_string(item, ("name",), (*path, "env", index))
        value = read_string(item, ("value",), (*path, "env", index))
        if name is None:
            continue  # the API server rejects it, with a better message
        if item.get("valueFrom") is not None:
            variables[name] = sources.read(item["valueFrom"])
        else:
            variables[name] = expansion.expand(value or "", value_of)
    return variables


def _value_of(variables: Variables, sources: Sources, name: str) -> str | None:
    """Return what `$(NAME)` stands for after some `variables`; None if that is unknown."""
    for defined in (variables, sources.known_from_env_from):
        if name in defined:
            return defined[name]
    return None if sources.env_from_has_more or _may_be_of_service(name) else f"$({name})"


def _may_be_of_service(name: str) -> bool:
    return any(part in name for part in _OF_SERVICES)


def words_of(words: list[str], variables: Variables) -> list[str]:
    """Return the words of a command as its program gets them.

    A `$(NAME)` without a known value stays as it is, as it does if no variable has that name.
    """
    expansion = _Expansion()

    def value_of(name: str) -> str:
        value = variables.get(name)
        return f"$({name})" if value is None else value

    expanded = [expansion.expand(word, value_of) for word in words]
    return [word if value is None else value for word, value in zip(words, expanded, strict=True)]


def may_expand(written: str) -> bool:
    """Return whether a text may differ from what the process gets."""
    return "$(" in written or "$$" in written


def read_field(source: Json, metadata: Json) -> str | None:
    """Return the value of a `valueFrom` that reads the pod's own metadata; None for any other.

    A label or annotation that the pod lacks may come later, and so may a name that is generated. A
    long value is unknown, too.
    """
    path = field_path(source)
    if path == "metadata.name" and at(metadata, ("generateName",)):
        return None
    match = _METADATA.fullmatch(path)
    if match is None:
        is_own = path in ("metadata.name", "metadata.namespace")
        return (_text_at(metadata, path.rpartition(".")[2]) or None) if is_own else None
    if match[1] == "annotations" and match[2].startswith(_WRITTEN_LATER):
        return None
    return _text_at(metadata, match[1], match[2])


def _text_at(metadata: Json, *path: str) -> str | None:
    """Return a text of the metadata; None without one, or if it is too long."""
    value = at(metadata, path)
    return value if isinstance(value, str) and len(value) <= _MAX_FIELD_LENGTH else None


def field_path(source: Json) -> str:
    """Return the field that a `valueFrom` reads, or ""."""
    path = fields_or_empty(fields_or_empty(source).get("fieldRef")).get("fieldPath")
    return path if isinstance(path, str) else ""


def derivation(env_items: list[JsonObject], name: str) -> str:
    """Return how the value of a variable comes about, as a clause; "" for a literal.

    `env_items` are those of its container, and its value is known.
    """
    item = env_items[_last(env_items, name)]
    written = str(item.get("value") or "")
    if item.get("valueFrom") is not None:
        return f"{field_path(item['valueFrom']):.80} in env"
    literal = not may_expand(written)
    return "" if literal else unexpanded(env_items, name) or f"{written:.60} in env"


def unexpanded(env_items: list[JsonObject], name: str) -> str:
    """Return why the value of a variable keeps a `$(NAME)`, as a clause; "" if it keeps none.

    `env_items` are those of its container, and its value is known.
    """
    index = _last(env_items, name)
    before, after = (
        {item.get("name") for item in items}
        for items in (env_items[:index], env_items[index + 1 :])
    )
    parts, _ = _split(str(env_items[index].get("value") or ""))
    for reference in parts[1::2]:
        if reference and reference not in before:
            when = "only later" if reference in after else "nowhere before"
            return f"$({reference:.60}) is not expanded, since env defines it {when}"
    return ""


def _last(env_items: list[JsonObject], name: str) -> int:
    return max(index for index, item in enumerate(env_items) if item.get("name") == name)
