"""Warnings about a valid update of the FabricConfiguration that may not be intended.

An update can remove fabrics that nodes belong to, and fields that somebody else applied. The
latter is visible in `managedFields`: which manager applied which fields, before and after.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from webhook.admission.review import mapping_at, string_at
from webhook.model.finding import Code, Finding, Location
from webhook.model.names import counted, shortened_list
from webhook.model.pod import at

NO_FABRICS_LEFT = Code(
    "NoFabricsLeft",
    "An update removes all fabrics from the FabricConfiguration.",
    "To undo the removal, apply the earlier file again.",
)
FABRIC_WITH_NODES_REMOVED = Code(
    "FabricWithNodesRemoved",
    "An update removes fabrics to which nodes belong.",
    "To undo the removal, apply a file that contains all of the fabrics.",
)
FABRICS_REMOVED_BY_APPLY = Code(
    "FabricsRemovedByApply",
    "A server-side apply removes fabrics that the same field manager applied earlier (perhaps "
    "from another file) or took over from a client-side kubectl apply.",
    "To undo the removal, run `kubectl apply --server-side --field-manager=NAME -f FILE` for the "
    "file that contains those fabrics, and use a different NAME for each file.",
)
FABRIC_OF_OTHER_MANAGER_REMOVED = Code(
    "FabricOfOtherManagerRemoved",
    "An update removes a fabric that a different field manager applied earlier.",
    "To undo the removal, reapply the file that contains the fabric. Use kubectl apply "
    "--server-side with a different --field-manager for each file: each apply then keeps the "
    "fabrics of the other files.",
)
OWNERSHIP_CHANGED = Code(
    "OwnershipChanged",
    "An update changes fields that a different field manager applied earlier.",
    "Make the same change in the file that the other field manager applies. Otherwise, the next "
    "apply of that file fails with a conflict, or restores the old values.",
)
CODES = (
    NO_FABRICS_LEFT,
    FABRIC_WITH_NODES_REMOVED,
    FABRICS_REMOVED_BY_APPLY,
    FABRIC_OF_OTHER_MANAGER_REMOVED,
    OWNERSHIP_CHANGED,
)

_APPLY = "Apply"
_FABRICS: tuple[str, ...] = ("spec", "fabrics")
#: The annotation in which a client-side `kubectl apply` stores the file.
_LAST_APPLIED = "f:kubectl.kubernetes.io/last-applied-configuration"
#: Longer names cannot be stored.
_MAX_NAME_LENGTH, _MAX_MANAGER_LENGTH = 63, 128
_MAX_NAMES = 10
_NOTHING: Mapping[str, object] = {}


class ConfigurationChange(NamedTuple):
    """The parts of an update that the warnings need; plain JSON, since the worker reads it."""

    #: The name of the client's field manager; "" if the client has sent none.
    manager: str
    #: Whether no fabrics are left.
    is_empty: bool
    #: The fabrics that the update removes → the number of nodes that belong to them.
    removed: Mapping[str, int]
    #: `managedFields` before and after the update.
    before: Sequence[object]
    after: Sequence[object]


def configuration_change(
    new: Mapping[str, object], old: Mapping[str, object], manager: str
) -> ConfigurationChange:
    """Compare an object with its predecessor, in linear time; the nodes are not counted yet."""
    names = _names(new)
    removed = dict.fromkeys((name for name in _names(old) if name not in names), 0)
    return ConfigurationChange(
        manager, not at(new, _FABRICS), removed, _managed_fields(old), _managed_fields(new)
    )


def _names(configuration: Mapping[str, object]) -> dict[str, None]:
    fabrics = at(configuration, _FABRICS)
    listed = fabrics if isinstance(fabrics, list) else ()
    names = (string_at(fabric, "name") for fabric in _mappings(listed))
    return dict.fromkeys(name[:_MAX_NAME_LENGTH] for name in names if name)


def _mappings(values: Iterable[object]) -> Iterator[Mapping[str, object]]:
    return (value for value in values if isinstance(value, dict))


def _managed_fields(configuration: Mapping[str, object]) -> list[object]:
    fields = at(configuration, ("metadata", "managedFields"))
    return fields if isinstance(fields, list) else []


def change_findings(change: ConfigurationChange) -> Iterator[Finding]:
    """Yield the warnings about an update, in linear time."""
    if change.is_empty:
        text = (
            "is empty, so pods that opted in are rejected (failurePolicy Fail) or created without "
            "RDMA (Ignore)"
        )
        yield _warning(NO_FABRICS_LEFT, text)
    inhabited = [
        f"{name} ({counted(nodes, 'node')})" for name, nodes in change.removed.items() if nodes
    ]
    if inhabited:
        text = (
            f"no longer has {_listed(inhabited)}, so new pods on these nodes get no RDMA unless "
            "another fabric matches the nodes"
        )
        yield _warning(FABRIC_WITH_NODES_REMOVED, text)
    yield from _ownership(change)


def _warning(code: Code, text: str, path: str = ".".join(_FABRICS)) -> Finding:
    return code.finding("warning", text, location=Location(path=path))


def _listed(names: Sequence[str]) -> str:
    return shortened_list(names, _MAX_NAMES)


# The ownership of fields.
#
# A server-side apply removes the fields that its manager has applied before and that its file no
# longer has. The first server-side apply to an object of client-side applies is special: kubectl
# transfers all fields of these to the manager, and applies the file again
# (kubectl, pkg/cmd/apply/apply.go, migrateToSSAIfNecessary).


class _Manager(NamedTuple):
    name: str
    operation: str


#: What a manager owns: "fabric NAME", or a field of the spec → its fields, as in `fieldsV1`.
_Owned = Mapping[str, object]


def _ownership(change: ConfigurationChange) -> Iterator[Finding]:
    before, after = _owners(change.before), _owners(change.after)
    client = _Manager(change.manager, _APPLY)
    removed = {_owned_name(name): name for name in change.removed}
    dropped: list[str] = []
    lost: list[str] = []
    for manager, owned in before.items():
        removed_fabrics = [removed[name] for name in owned if name in removed]
        if manager == client:
            yield from _own_fabrics_removed(change, removed_fabrics)
        # Updates by other clients do not depend on ownership.
        elif manager.name != client.name and (manager.operation == _APPLY or client in after):
            kept, suffix = after.get(manager, _NOTHING), f" ({manager.name:.{_MAX_MANAGER_LENGTH}})"
            dropped += [fabric + suffix for fabric in removed_fabrics]
            others = (name for name in owned if name not in removed)
            lost += [name + suffix for name in others if _loses(owned, kept, name)]
    yield from _others_fields_changed(change, [*dict.fromkeys(dropped)], [*dict.fromkeys(lost)])


def _own_fabrics_removed(change: ConfigurationChange, dropped: Sequence[str]) -> Iterator[Finding]:
    """Warn if the client's file probably is not the file that had these fabrics."""
    after_client_side = any(_owns_last_applied(owner) for owner in change.before)
    if not dropped or (len(dropped) == 1 and not after_client_side):
        return
    them = "it" if len(dropped) == 1 else "them"
    origin = " from an earlier apply"
    if after_client_side:
        origin = f", perhaps because kubectl transferred {them} from a client-side apply"
    text = (
        f"{_client(change)} removes {_listed(dropped)}, since the file just applied does not "
        f"contain {them}, and this manager owned {them}{origin}"
    )
    yield _warning(FABRICS_REMOVED_BY_APPLY, text)


def _others_fields_changed(
    change: ConfigurationChange, dropped: Sequence[str], lost: Sequence[str]
) -> Iterator[Finding]:
    if dropped:
        noun = "fabric" if len(dropped) == 1 else "fabrics"
        text = (
            f"{_client(change)} removes what other field managers had applied: {noun} "
            f"{_listed(dropped)}"
        )
        yield _warning(FABRIC_OF_OTHER_MANAGER_REMOVED, text)
    if lost:
        text = (
            f"{_client(change)} changes fields that other field managers had applied: "
            f"{_listed(lost)}"
        )
        yield _warning(OWNERSHIP_CHANGED, text, "spec")


def _client(change: ConfigurationChange) -> str:
    name = change.manager[:_MAX_MANAGER_LENGTH]
    return f"field manager {name}" if name else "a client without a field manager"


def _owners(managed_fields: Sequence[object]) -> Mapping[_Manager, _Owned]:
    """Return what each manager owns of the spec."""
    owners: dict[_Manager, dict[str, object]] = {}
    for owner in _mappings(managed_fields):
        manager = _Manager(string_at(owner, "manager"), string_at(owner, "operation"))
        spec = mapping_at(mapping_at(owner, "fieldsV1"), "f:spec")
        owners.setdefault(manager, {}).update(_owned(spec))
    return owners


def _owned(spec: Mapping[str, object]) -> _Owned:
    fabrics = mapping_at(spec, "f:fabrics")
    owned = {
        _owned_name(key.removeprefix('k:{"name":"').removesuffix('"}')): fields
        for key, fields in fabrics.items()
        if key != "."
    }
    others = {
        key.removeprefix("f:"): fields
        for key, fields in spec.items()
        if key not in (".", "f:fabrics")
    }
    return {**owned, **others}


def _owned_name(fabric: str) -> str:
    return f"fabric {fabric[:_MAX_NAME_LENGTH]}"


def _owns_last_applied(owner: object) -> bool:
    """Return whether this is a server-side apply that owns the annotation of client-side ones."""
    path = ("fieldsV1", "f:metadata", "f:annotations", _LAST_APPLIED)
    return at(owner, ("operation",)) == _APPLY and at(owner, path) is not None


def _loses(before: Mapping[str, object], after: Mapping[str, object], key: str) -> bool:
    """Return whether the field at a key of `before`, or a field below it, is not in `after`."""
    pairs: list[tuple[object, object]] = [({key: before[key]}, after)]
    while pairs:
        old, new = pairs.pop()
        for name, fields in old.items() if isinstance(old, dict) else ():
            if not isinstance(new, dict) or name not in new:
                return True
            pairs.append((fields, new[name]))
    return False
