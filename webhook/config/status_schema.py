"""The schema of a FabricConfiguration's status: what the webhook finds out about it."""

from __future__ import annotations

from webhook.config.structural import Schema


def _field(kind: str, description: str) -> Schema:
    return {"description": description, "type": kind}


def _mapping(properties: dict[str, Schema], *required: str) -> Schema:
    made: Schema = {"type": "object", "properties": properties}
    return {**made, "required": list(required)} if required else made


def _map(description: str, key: str, item: Schema) -> Schema:
    """Return a list whose items are told apart by a field."""
    keyed = {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": [key]}
    return {**_field("array", description), "items": item, **keyed}


def _count(description: str) -> Schema:
    return {**_field("integer", description), "format": "int64", "minimum": 0}


#: As metav1.Condition of Kubernetes.
_CONDITION = _mapping(
    {
        "type": _field(
            "string",
            "`Valid`: the webhook can use the spec. `Active`: the replicas decide with it.",
        ),
        "status": {
            **_field("string", "Whether the condition holds."),
            "enum": ["True", "False", "Unknown"],
        },
        "observedGeneration": _count("The metadata.generation that the condition is about."),
        "lastTransitionTime": {
            **_field("string", "When the status of the condition last changed."),
            "format": "date-time",
        },
        "reason": {
            **_field("string", "Why the condition has its status: one word in CamelCase."),
            "minLength": 1,
            "maxLength": 1024,
        },
        "message": {
            **_field(
                "string", "The reason in sentences: what is wrong, where, and what would be right."
            ),
            "maxLength": 32768,
        },
    },
    *("type", "status", "lastTransitionTime", "reason", "message"),
)
_RESOURCE = _mapping(
    {
        "name": _field("string", "Name of the extended resource, e.g. `rdma/rdma_v100`."),
        "allocatable": _count("Devices that the fabric's nodes can allocate, in total."),
        "nodes": _count("Number of the fabric's nodes that offer the resource."),
    },
    "name",
)
_FABRIC = _mapping(
    {
        "name": _field("string", "Name of the fabric."),
        "nodes": _count("Number of nodes that belong to the fabric."),
        "gpus": _count("GPUs that these nodes can allocate, in total."),
        "resources": _map("The RDMA resources that the fabric's nodes offer.", "name", _RESOURCE),
        "problems": {
            **_field(
                "array", "What keeps pods from using the fabric, one sentence for each problem."
            ),
            "items": {"type": "string"},
        },
    },
    "name",
)
STATUS_SCHEMA: Schema = {
    "description": "What the webhook finds out about the spec. Only the webhook writes it.",
    **_mapping(
        {
            "observedGeneration": _count("The metadata.generation that the status is about."),
            "conditions": _map(
                "Whether the configuration is valid, and in use.", "type", _CONDITION
            ),
            "fabricNames": _field("string", "Names of the fabrics, as `kubectl get` shows them."),
            "nodes": _count("Number of nodes that belong to a fabric."),
            "fabrics": _map("What the cluster's nodes offer on each fabric.", "name", _FABRIC),
        }
    ),
}
