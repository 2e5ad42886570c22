"""The changes of a pod that the design allows a decision; everything else is the user's.

Design 1.3: `limits.memory` may be removed, an aliased RDMA resource renamed, words inserted into
`command` and `args`, and networks appended. All other changes are additions in known places.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from tests.property.changes import Change, changes
from webhook.decide.mutations.ipc_lock import UNLIMITED
from webhook.decide.shell.argv import remap_length
from webhook.model.annotations import STATUS_ANNOTATION
from webhook.model.claims import CLAIM_PREFIX
from webhook.model.fabric import CompiledConfiguration
from webhook.model.libraries import VARIABLES
from webhook.model.pod import at, dotted
from webhook.model.quantity import parse


class WritableNames(NamedTuple):
    """The names that a decision may write with a configuration."""

    resources: frozenset[str]
    aliases: dict[str, frozenset[str]]  #: alias → the resources that it stands for
    templates: frozenset[str]  #: ResourceClaimTemplates
    selectors: frozenset[str]
    variables: frozenset[str]  #: of the site's own `env`
    annotations: frozenset[tuple[str, str]]  #: keys and values that attach a fabric's NICs


def names_of(configuration: CompiledConfiguration) -> WritableNames:
    """List the names that a configuration's fabrics add to pods."""
    members = configuration.fabrics.values()
    resources = [resource for fabric in members for resource in fabric.resources]
    return WritableNames(
        resources=frozenset(resource.name for resource in resources),
        aliases={
            alias: frozenset(resource.name for resource in resources if alias in resource.aliases)
            for alias in {alias for resource in resources for alias in resource.aliases}
        },
        templates=frozenset(
            reference.template for fabric in members for reference in fabric.claim_templates
        ),
        selectors=frozenset(key for fabric in members for key in fabric.pin_selector or ()),
        variables=frozenset(name for fabric in members for name, _ in fabric.env.site_variables),
        annotations=frozenset(pair for fabric in members for pair in fabric.annotations.items()),
    )


def forbidden(before: Any, after: Any, writable: WritableNames) -> Iterator[Change]:
    """Yield the differences that the design does not list."""
    for change in changes(before, after):
        if change.kind == "added":
            yield from (leaf for leaf in _leaves(change) if not _may_add(leaf, writable))
        elif change.kind == "removed":
            if not _may_remove(change, after, writable):
                yield change
        elif not _may_replace(change, writable):
            yield change


# What may be added

_NETWORKS = 'metadata.annotations["k8s.v1.cni.cncf.io/networks"]'
_ULIMITS = r"ulimits\.(noderesource\.dev|nri\.containerd\.io)"
_CONTAINER = r"spec\.(?:initC|c)ontainers\[\d+\]"
_VOLUMES = ("rdma-lab-shm", "rdma-lab-nccl-conf")
_TEMPLATE = "resourceClaimTemplateName"
_VARIABLES = {row.name for row in VARIABLES}
_SWITCH = "OMPI_MCA_coll_hcoll_enable"


def _leaves(change: Change) -> Iterator[Change]:
    """Split an addition into parts that one rule covers: a leaf, or a mapping in a list."""
    value: Any = change.after
    listed = value.__class__ is dict and change.path[-1:] and change.path[-1].__class__ is int
    if value.__class__ not in (dict, list) or listed or not value:
        yield change
        return
    inner = value.items() if value.__class__ is dict else enumerate(value)
    for step, child in inner:
        yield from _leaves(Change("added", (*change.path, step), None, child))


def _is_ours(change: Change, writable: WritableNames) -> bool:
    del writable
    return change.after.__class__ is dict and change.after.get("name") in _VOLUMES


#: What `nvlink` adds where NCCL lacks only an equal host hash.
_HOST_ID = {"name": "NCCL_HOSTID", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}}


def _is_variable(change: Change, writable: WritableNames) -> bool:
    if change.after == _HOST_ID:
        return True
    name = str(change.after.get("name")) if change.after.__class__ is dict else ""
    return name in _VARIABLES or name == _SWITCH or name in writable.variables


def _is_our_claim(change: Change, writable: WritableNames) -> bool:
    claim = change.after
    if claim.__class__ is not dict or set(claim) != {"name", "resourceClaimTemplateName"}:
        return False
    return claim["name"].startswith(CLAIM_PREFIX) and claim[_TEMPLATE] in writable.templates


def _uses_a_claim(change: Change, writable: WritableNames) -> bool:
    del writable
    return change.after.__class__ is dict and set(change.after) <= {"name", "request"}


def _is_text(change: Change, writable: WritableNames) -> bool:
    del writable
    return change.after.__class__ is str


def _is_unlimited(change: Change, writable: WritableNames) -> bool:
    del writable
    return bool(change.after == UNLIMITED)


_Rule = Callable[[Change, WritableNames], bool]
_ADDITIONS: tuple[tuple[re.Pattern[str], _Rule], ...] = tuple(
    (re.compile(pattern, re.DOTALL), rule)
    for pattern, rule in (
        (r"metadata\.annotations\[\"rdma\.lab/(status|nccl-conf)\"\]", _is_text),
        (re.escape(_NETWORKS), _is_text),
        (
            r"metadata\.annotations(\[.*\]|\.\w+)",
            lambda change, writable: (change.path[-1], change.after) in writable.annotations,
        ),
        (rf"metadata\.annotations\[\"{_ULIMITS}/container\..*\"\]", _is_unlimited),
        (
            r"spec\.nodeSelector(\[.*\]|\.\w+)",
            lambda change, writable: change.path[-1] in writable.selectors,
        ),
        (r"spec\.volumes\[\d+\]", _is_ours),
        (r"spec\.resourceClaims\[\d+\]", _is_our_claim),
        (r"spec\.containers\[\d+\]\.resources\.claims\[\d+\]", _uses_a_claim),
        (rf"(spec|{_CONTAINER})\.resources\.requests\.memory", lambda *_: True),
        (rf"{_CONTAINER}\.env\[\d+\]", _is_variable),
        (rf"{_CONTAINER}\.volumeMounts\[\d+\]", _is_ours),
        (
            rf"{_CONTAINER}\.securityContext\.capabilities\.add\[\d+\]",
            lambda change, _: change.after == "IPC_LOCK",
        ),
        (
            r"spec\.containers\[\d+\]\.resources\.(limits|requests)(\[.*\]|\.\w+)",
            lambda change, writable: change.path[-1] in writable.resources,
        ),
    )
)


def _may_add(leaf: Change, writable: WritableNames) -> bool:
    path = dotted(leaf.path)
    return any(place.fullmatch(path) and rule(leaf, writable) for place, rule in _ADDITIONS)


# What may be removed, and what may be replaced

_LIMIT = re.compile(rf"(spec|{_CONTAINER})\.resources\.limits\.memory")
_AMOUNT = re.compile(
    r"spec\.containers\[\d+\]\.resources\.(limits|requests)(\[.*\]|\.\w+)", re.DOTALL
)
_FLAG = " -mca coll_hcoll_enable 0"
_WORDS = ["-mca", "coll_hcoll_enable", "0"]


def _may_remove(change: Change, after: Any, writable: WritableNames) -> bool:
    """Allow limits.memory, if the request is there, and an alias, if its resource is there.

    Also allow another writer's status, if there is no room for a new one.
    """
    path = dotted(change.path)
    if change.path == ("metadata", "annotations", STATUS_ANNOTATION):
        return True
    if _LIMIT.fullmatch(path):
        return at(after, (*change.path[:-2], "requests", "memory")) is not None
    real, section = writable.aliases.get(str(change.path[-1])), at(after, change.path[:-1])
    renamed = real and section.__class__ is dict and not real.isdisjoint(section)
    return bool(renamed and _AMOUNT.fullmatch(path))


def _may_replace(change: Change, writable: WritableNames) -> bool:
    """Allow words inserted into commands, appended networks, a merged quantity, the status."""
    if change.path[-1:] in (("command",), ("args",)):
        return _only_inserted(change.before, change.after)
    path = dotted(change.path)
    if path == _NETWORKS:
        return _only_appended(str(change.before), change.after)
    if _AMOUNT.fullmatch(path) and any(
        change.path[-1] in real for real in writable.aliases.values()
    ):
        return parse(change.after) > parse(change.before)
    return change.path == ("metadata", "annotations", STATUS_ANNOTATION)


def _only_appended(before: str, after: str) -> bool:
    original = before.rstrip()
    original = original[:-1].rstrip() if original.lstrip().startswith("[") else original.rstrip(",")
    return after.startswith(original)


def _only_inserted(before: list[Any], after: list[Any]) -> bool:
    """Return whether all words are still there in order, each unchanged or with the flag inserted.

    The remap may precede them, and the flag may be between them as separate words.
    """
    if after.__class__ is not list or not all(word.__class__ is str for word in before + after):
        return False
    words = iter(after[0 if remap_length(before) else remap_length(after) :])
    between: list[str] = []
    for original in before:
        for word in words:
            if word == original or (_FLAG in word and _without_flags(word).fullmatch(original)):
                break
            between.append(word)
        else:
            return False
    between += words
    return between == _WORDS * (len(between) // len(_WORDS))


def _without_flags(script: str) -> re.Pattern[str]:
    """Match a script with fewer flags, or without the blank that `2>log` gets after a flag."""
    first, *pieces = (re.escape(part) for part in script.split(_FLAG))
    patterns = (re.sub(r"^\\ (?=[<>])", " ?", part) for part in pieces)
    return re.compile("".join([first, *(f"(?:{re.escape(_FLAG)})?{part}" for part in patterns)]))
