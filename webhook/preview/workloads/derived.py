"""Pods derived from the containers and pod specs of custom resources, by their shape.

An operator makes such pods, and may add anything; nothing of that is emulated. So only a part that
requests a device itself is decided on: a GPU or a NIC that stands elsewhere in the object would be
missing, and the verdict wrong.
"""

from __future__ import annotations

from webhook.model.pod import Path, fields_or_empty
from webhook.preview.workloads.notes import is_container
from webhook.preview.workloads.objects import values_along
from webhook.preview.workloads.templates import (
    NO_OBJECT,
    LocatedMapping,
    Template,
    mappings_of,
    spec_template,
)

#: The fields of a pod spec that count next to a container, with their types: a field with the same
#: name and another type is the operator's own.
_POD_FIELDS: dict[str, type] = {
    "affinity": dict,
    "dnsPolicy": str,
    "hostIPC": bool,
    "hostNetwork": bool,
    "nodeName": str,
    "nodeSelector": dict,
    "resourceClaims": list,
    "runtimeClassName": str,
    "tolerations": list,
    "volumes": list,
}


def derived_templates(value: object) -> list[Template]:
    """List the pods derived from the parts of a JSON value, in the order of the document."""
    derived: list[Template] = []
    inside: set[int] = set()  # the ids of containers in a part that is already a pod
    for mapping in mappings_of(value):
        if mapping.is_pod or mapping.enclosing is NO_OBJECT or id(mapping.node) in inside:
            continue
        containers = _named_containers(mapping)
        if containers:
            inside.update(map(id, containers))
        elif is_container(mapping):
            containers = [{"name": _name(mapping.path), **mapping.node}]
        if any(map(_requests_device, containers)):
            pod_fields = (
                mapping.node if id(containers[0]) in inside else _enclosing_mapping(value, mapping)
            )
            spec = {**_typed(pod_fields), "containers": containers}
            derived.append(spec_template(mapping, mapping.path, spec, derived=True))
    return derived


def _named_containers(mapping: LocatedMapping) -> list[dict[str, object]]:
    """Return the containers of a mapping that resembles a pod spec; [] for another mapping."""
    listed = mapping.node.get("containers")
    if not isinstance(listed, list):
        return []
    return [
        container
        for container in listed
        if isinstance(container, dict) and isinstance(container.get("name"), str)
    ]


def _name(path: Path) -> str:
    """Return the name for a container without one: the key of its field."""
    return next((step for step in reversed(path) if isinstance(step, str)), "")


def _enclosing_mapping(value: object, mapping: LocatedMapping) -> dict[str, object]:
    """Return the nearest mapping around a container."""
    outer = values_along(value, mapping.path)[:-1]
    return next((node for node in reversed(outer) if isinstance(node, dict)), {})


def _typed(fields: dict[str, object]) -> dict[str, object]:
    return {
        field: fields[field]
        for field, type_ in _POD_FIELDS.items()
        if isinstance(fields.get(field), type_)
    }


def _requests_device(container: dict[str, object]) -> bool:
    """Return whether a container requests an extended resource, or uses a DRA claim."""
    resources = fields_or_empty(container.get("resources"))
    amounts = [fields_or_empty(resources.get(section)) for section in ("limits", "requests")]
    return bool(resources.get("claims")) or any("/" in name for names in amounts for name in names)
