"""Read the objects that own an object: a pod's controller, its controller, and so on."""

from __future__ import annotations

from typing import Any

from webhook.kube.cluster_reads import PermittedReads, ReadObject
from webhook.model.owner_references import MOST_OWNERS, controller_reference
from webhook.model.pod import at


class OwnerChain:
    """Reads the owners of objects in one namespace, each kind and each owner once."""

    def __init__(self, permitted: PermittedReads, namespace: str) -> None:
        """Read with somebody's rights; what cannot be read ends a chain."""
        self._permitted = permitted
        self._namespace = namespace
        self._kinds: dict[str, list[ReadObject]] = {}
        self._owners: dict[tuple[str, str, str], ReadObject | None] = {}

    def of(self, item: ReadObject) -> tuple[ReadObject, ...]:
        """Return the controller, its controller, and so on, as far as they can be read."""
        found: list[ReadObject] = []
        while len(found) < MOST_OWNERS and (reference := controller_reference(item)):
            owner = self._owner(reference)
            if owner is None:
                break
            found.append(owner)
            item = owner
        return tuple(found)

    def _owner(self, reference: ReadObject) -> ReadObject | None:
        key = (_word(reference, "apiVersion"), _word(reference, "kind"), _word(reference, "name"))
        if key not in self._owners:
            self._owners[key] = self._read(*key)
        return self._owners[key]

    def _read(self, version: str, kind: str, name: str) -> ReadObject | None:
        root = f"/apis/{version}" if "/" in version else f"/api/{version}"
        for resource in self._kinds_of(version, root):
            if resource.get("kind") == kind and "/" not in _word(resource, "name"):
                if not resource.get("namespaced"):
                    return None  # the Node of a mirror pod
                path = f"{root}/namespaces/{self._namespace}/{resource.get('name')}/{name}"
                found = self._permitted.get(path, f"{kind} {name}")
                return found and {**found, "apiVersion": version, "kind": kind}
        return None

    def _kinds_of(self, version: str, root: str) -> list[ReadObject]:
        if version not in self._kinds:
            known = self._permitted.get(root, f"the kinds of {version}")
            self._kinds[version] = _mappings(at(known, ("resources",)))
        return self._kinds[version]


def _mappings(found: Any) -> list[ReadObject]:
    return [one for one in found if isinstance(one, dict)] if isinstance(found, list) else []


def _word(item: ReadObject, key: str) -> str:
    found = item.get(key)
    return found if isinstance(found, str) else ""
