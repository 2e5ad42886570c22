"""The CustomResourceDefinition of FabricConfiguration: the models' spec, and its status.

`make golden` writes it to manifests/crd/.
"""

from __future__ import annotations

import yaml

from webhook.config.custom_resource import CONFIGURATION_NAME, FIELDS, MAX_KEPT
from webhook.config.model import API_VERSION, KIND
from webhook.config.schema import PRESERVED, Schema, json_schema, structural
from webhook.model.json import JsonObject

GROUP, VERSION = API_VERSION.split("/")
PLURAL = "fabricconfigurations"
SHORT_NAME = "fabrics"
#: The maximum number of entries in `status.replicas`; those of pods that were killed stay a while.
_MAX_REPLICAS = 100
_SUMMARY = (
    "FabricConfiguration describes the RDMA fabrics of a cluster, and how rdma-webhook equips pods "
    f"for them. There is one object for the whole cluster, and its name is {CONFIGURATION_NAME}."
)
#: Tools that remove what they have installed keep an object with these annotations.
_KEEP = {
    "argocd.argoproj.io/sync-options": "Prune=false,Delete=false",
    "helm.sh/resource-policy": "keep",
    "kustomize.toolkit.fluxcd.io/prune": "disabled",
}
#: Rules in CEL; the API server writes the field before the message.
_RULES = (
    {
        "rule": f"self.metadata.name == '{CONFIGURATION_NAME}'",
        "message": (
            f"must be {CONFIGURATION_NAME}, since the webhook reads only the object named "
            f"{CONFIGURATION_NAME}"
        ),
        "fieldPath": ".metadata.name",
    },
    {
        "rule": "has(self.spec)",
        "message": f"{', '.join(FIELDS[:-1])} and {FIELDS[-1]} belong in it",
        "reason": "FieldValueRequired",
        "fieldPath": ".spec",
    },
)
#: Name → type, JSON path, description: the columns of `kubectl get` besides the name.
_COLUMNS = {
    "Fabrics": ("string", ".status.fabricNames", "Names of the fabrics."),
    "Nodes": ("integer", ".status.nodes", "Number of nodes of a fabric that take pods."),
    "Ready": (
        "string",
        '.status.conditions[?(@.type=="Ready")].status',
        "Whether this configuration is in effect on every replica.",
    ),
    "Problems": ("integer", ".status.problems", "Number of problems that keep pods from a fabric."),
    "Age": ("date", ".metadata.creationTimestamp", "Time since the object was created."),
}
_COMMENT = """\
# The kind FabricConfiguration, whose only object describes the fabrics of a site. The definition is
# separate, in no overlay, for two reasons. kubectl looks up all kinds of its input before applying
# any of it, so a definition and an object of its kind cannot come in one apply. And deleting a
# definition deletes all objects of its kind, so the removal of the program must leave it in place:
# the annotations make Helm, Argo CD and Flux keep it.
#
# `make golden` writes this file from webhook/config/model.py.
"""


def definition() -> JsonObject:
    """Return the CustomResourceDefinition, in JSON's types."""
    names = {
        "kind": KIND,
        "listKind": f"{KIND}List",
        "plural": PLURAL,
        "singular": KIND.lower(),
        "shortNames": [SHORT_NAME],
    }
    metadata = {
        "name": f"{PLURAL}.{GROUP}",
        "labels": {"app.kubernetes.io/part-of": "rdma-webhook"},
        "annotations": _KEEP,
    }
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": metadata,
        "spec": {"group": GROUP, "names": names, "scope": "Cluster", "versions": [_version()]},
    }


def definition_text() -> str:
    """Return the definition as YAML, with comments: the file in manifests/crd/."""
    return _COMMENT + yaml.safe_dump(definition(), sort_keys=False, width=100)


def _version() -> JsonObject:
    columns = [
        {"name": name, "type": kind, "jsonPath": path, "description": description}
        for name, (kind, path, description) in _COLUMNS.items()
    ]
    return {
        "name": VERSION,
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": _object()},
        "subresources": {"status": {}},
        "additionalPrinterColumns": columns,
    }


def _object() -> Schema:
    """Return the schema of the object; the API server adds the schema of its metadata."""
    schema = json_schema()
    spec = structural(schema["properties"]["spec"], schema["$defs"])
    # Several people, or tools, can each apply fabrics of their own.
    spec["properties"]["fabrics"] |= {
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["name"],
    }
    return {
        "description": _SUMMARY,
        **PRESERVED,
        "properties": {
            "apiVersion": {"type": "string"},
            "kind": {"type": "string"},
            "metadata": {"type": "object", "properties": {"name": {"type": "string"}}},
            "spec": spec,
            "status": STATUS_SCHEMA,
        },
        "x-kubernetes-validations": list(_RULES),
    }


# The schema of a FabricConfiguration's status: the webhook's observations.
#
# The items of its lists and maps may have any form. The API server compares each error of a schema
# with all earlier ones, and only then asks the policies, so that thousands of items of a wrong form
# would cost seconds of its CPU time. The policy rdma-webhook-guard-status checks their form.

#: A value of any form.
_ANY: Schema = {"x-kubernetes-preserve-unknown-fields": True}


def _field(kind: str, description: str) -> Schema:
    return {"description": description, "type": kind}


def _count(description: str) -> Schema:
    return {**_field("integer", description), "format": "int64", "minimum": 0}


def _list(description: str, item: Schema) -> Schema:
    """Return a list that is written as a whole, so that nobody else can add items."""
    return {**_field("array", description), "items": item, "x-kubernetes-list-type": "atomic"}


def _any(description: str, **below: Schema) -> Schema:
    """Return a field of any form; `below` is the part that `kubectl explain` shows below it."""
    return {"description": description, **_ANY, **below}


def _described(descriptions: dict[str, str | Schema]) -> Schema:
    """Return an item whose fields have these descriptions."""
    properties = {
        name: _any(field) if isinstance(field, str) else field
        for name, field in descriptions.items()
    }
    return {**_ANY, "properties": properties}


#: Like metav1.Condition of Kubernetes.
_CONDITION = _described(
    {
        "type": "`Ready`: this spec is in effect on every replica. `Valid`: the webhook can use "
        "the spec. `Active`: the replica that wrote this uses it for its decisions. `Called`: "
        "the API server calls the webhook.",
        "status": "Whether the condition holds: `True`, `False` or `Unknown`.",
        "observedGeneration": "The metadata.generation that the condition is about.",
        "lastTransitionTime": "When the status of the condition last changed, in UTC.",
        "reason": "Why the condition has its status: one word in CamelCase.",
        "message": "The reason in sentences: what is wrong, where, and what would be right.",
    }
)
_RESOURCE = _described(
    {
        "name": "Name of the extended resource, e.g. `rdma/rdma_v100`.",
        "allocatable": "Devices that these nodes can allocate, in total.",
        "nodes": "Number of these nodes that offer the resource.",
    }
)
_FABRIC = _described(
    {
        "name": "Name of the fabric.",
        "nodes": "Number of nodes that belong to the fabric and take pods.",
        "unavailableNodes": "Number of nodes that belong to the fabric but take no pods: they are "
        "cordoned or not ready, or Kubernetes has tainted them. `problems` names them.",
        "gpus": "GPUs that these nodes can allocate, in total.",
        "resources": _any("The RDMA resources that these nodes offer.", items=_RESOURCE),
        "problems": _any(
            "What keeps pods from using the fabric, one sentence for each problem.", items=_ANY
        ),
        "notes": _any("Taints of the fabric's nodes for which pods need tolerations.", items=_ANY),
    }
)
_REPLICA = {
    "description": "What one replica uses.",
    **_described(
        {
            "config": "Hash of the configuration in use, as in the status of pods.",
            "generation": "The metadata.generation of the configuration in use; 0 without one.",
            "version": "Version of the program.",
            "seen": "When the replica wrote this, in UTC.",
        }
    ),
}
_KEPT = _described(
    {
        "generation": "The metadata.generation that had this spec.",
        "config": "Hash of the configuration, as in the status of pods.",
        "spec": "The spec.",
    }
)
STATUS_SCHEMA: Schema = {
    "description": "What the webhook has observed about the spec. Only the webhook writes it.",
    "type": "object",
    "properties": {
        "observedGeneration": _count("The metadata.generation that the status is about."),
        "conditions": _list("Whether the configuration is valid, and in use.", _CONDITION),
        "fabricNames": _field("string", "Names of the fabrics, as `kubectl get` shows them."),
        "nodes": _count("Number of nodes that belong to a fabric and take pods."),
        "problems": _count("Number of problems of all fabrics."),
        "replicas": {
            **_field("object", "What each replica uses, by the name of its pod."),
            "additionalProperties": _REPLICA,
            "maxProperties": _MAX_REPLICAS,
        },
        "kept": {
            **_list(
                "The last good specs, the newest first. A replica that starts while the spec "
                "cannot be used decides with the newest that it can use.",
                _KEPT,
            ),
            "maxItems": MAX_KEPT,
        },
        "fabrics": _list("What the cluster's nodes offer on each fabric.", _FABRIC),
    },
}
