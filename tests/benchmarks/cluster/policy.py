"""A MutatingAdmissionPolicy that makes the same changes as our webhook, and its binding.

It is of the cheaper kind, a JSON patch. Its operations are those of our patch, written in CEL.
"""

from __future__ import annotations

import json

from tests.benchmarks.cluster.modes import ADMISSION, POLICY, Document, selector, shipped_webhook
from webhook.model.annotations import STATUS_ANNOTATION

_KIND = "MutatingAdmissionPolicy"
#: A second call must not make the changes again: the removed field is gone.
_NOT_YET = {
    "name": "not-yet",
    "expression": f"!('{STATUS_ANNOTATION}' in object.metadata.annotations)",
}


def policy(patch: list[Document]) -> list[Document]:
    """Return the policy, for the pods that our webhook is called for, and its binding."""
    webhook = shipped_webhook()
    matched = ("apiGroups", "apiVersions", "operations", "resources", "scope")
    rules = [{key: rule[key] for key in matched} for rule in webhook["rules"]]
    spec = {
        "failurePolicy": webhook["failurePolicy"],
        "reinvocationPolicy": webhook["reinvocationPolicy"],
        "matchConstraints": {
            "matchPolicy": webhook["matchPolicy"],
            "namespaceSelector": webhook["namespaceSelector"] | selector(POLICY),
            "resourceRules": rules,
        },
        "matchConditions": [*webhook["matchConditions"], _NOT_YET],
        "mutations": [
            {
                "patchType": "JSONPatch",
                "jsonPatch": {"expression": f"[{', '.join(map(_operation, patch))}]"},
            }
        ],
    }
    name = {"metadata": {"name": POLICY.namespace}}
    binding = {"policyName": POLICY.namespace}
    return [
        {"apiVersion": ADMISSION, "kind": _KIND, **name, "spec": spec},
        {"apiVersion": ADMISSION, "kind": f"{_KIND}Binding", **name, "spec": binding},
    ]


def _operation(operation: Document) -> str:
    """Write an operation in CEL, whose literals are written like those of JSON."""
    fields = ", ".join(f"{key}: {json.dumps(value)}" for key, value in operation.items())
    return f"JSONPatch{{{fields}}}"
