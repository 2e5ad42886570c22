"""How our webhook is registered: its entry in a MutatingWebhookConfiguration.

Objects of a cluster or of a file may have any shape; a field of a wrong type counts as absent.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from webhook.model.pod import Path, at

#: The webhook of the manifests; the name of the configuration may differ.
WEBHOOK_NAME = "pods.rdma.lab"
#: The API server gives every namespace this label.
NAME_LABEL = "kubernetes.io/metadata.name"
#: The namespace that this webhook runs in; it must never wait for itself.
OWN_NAMESPACE = "rdma-webhook"
EXCLUDED = frozenset({"kube-system", "kube-public", "kube-node-lease", OWN_NAMESPACE})
ASKS = (
    "has(object.metadata.annotations) && 'rdma.lab/enable' in object.metadata.annotations && "
    "object.metadata.annotations['rdma.lab/enable'] != 'false'"
)
NO_MIRROR = (
    "!has(object.metadata.annotations) || "
    "!('kubernetes.io/config.mirror' in object.metadata.annotations)"
)
NOT_WINDOWS = (
    "!has(object.spec.os) || !has(object.spec.os.name) || object.spec.os.name != 'windows'"
)
_Item = dict[str, Any]


class WebhookSetup(NamedTuple):
    """The webhook in its MutatingWebhookConfiguration."""

    configuration: _Item
    webhook: _Item

    @property
    def name(self) -> str:
        """The name of the configuration."""
        found = at(self.configuration, ("metadata", "name"))
        return found if isinstance(found, str) else ""

    @property
    def conditions(self) -> Iterator[tuple[str, str]]:
        """The name and the expression of each matchCondition, the latter with single spaces."""
        for one in _mappings(self.webhook, ("matchConditions",)):
            yield str(one.get("name")), " ".join(str(one.get("expression")).split())

    @property
    def creation_of_pods(self) -> bool:
        """Whether a rule selects the creation of pods."""
        return any(
            all(
                not set(wanted).isdisjoint(_words(rule, field))
                for field, wanted in _CREATION.items()
            )
            and rule.get("scope", "*") in ("*", "Namespaced")
            for rule in _mappings(self.webhook, ("rules",))
        )

    def requirements(self, selector: str) -> list[Requirement]:
        """Return what `namespaceSelector` or `objectSelector` requires of labels."""
        labels = at(self.webhook, (selector, "matchLabels"))
        exact = labels.items() if isinstance(labels, dict) else ()
        found = [Requirement(key, "In", (str(value),)) for key, value in exact]
        for one in _mappings(self.webhook, (selector, "matchExpressions")):
            words = tuple(_words(one, "values"))
            found.append(Requirement(str(one.get("key")), str(one.get("operator")), words))
        return found


class Requirement(NamedTuple):
    """One requirement of a label selector."""

    key: str
    operator: str
    values: tuple[str, ...] = ()

    def met(self, labels: dict[str, str]) -> bool:
        """Return whether labels meet it; an operator that is not known is never met.

        Source: apimachinery, pkg/labels, Requirement.Matches.
        """
        present = self.key in labels
        match self.operator:
            case "In":
                return present and labels[self.key] in self.values
            case "NotIn":
                return not present or labels[self.key] not in self.values
            case "Exists":
                return present
            case "DoesNotExist":
                return not present
            case _:
                return False

    def __str__(self) -> str:
        """Return it in words, behind "needs"."""
        match self.operator, self.values:
            case "In", (value,):
                return f'{self.key}: "{value}"'
            case "Exists", _:
                return f"a label {self.key}"
            case "DoesNotExist", _:
                return f"to be without the label {self.key}"
            case _:
                word = {"In": "in", "NotIn": "not in"}.get(self.operator, self.operator)
                return f"{self.key} {word} ({', '.join(self.values)})"


def webhooks_in(configurations: Iterable[_Item]) -> tuple[WebhookSetup, ...]:
    """Return the webhooks of ours among these MutatingWebhookConfigurations."""
    return tuple(
        WebhookSetup(configuration, webhook)
        for configuration in configurations
        for webhook in _mappings(configuration, ("webhooks",))
        if webhook.get("name") == WEBHOOK_NAME
    )


def _mappings(node: Any, path: Path) -> list[_Item]:
    found = at(node, path)
    return [one for one in found if isinstance(one, dict)] if isinstance(found, list) else []


def _words(node: _Item, field: str) -> list[str]:
    found = node.get(field)
    return [one for one in found if isinstance(one, str)] if isinstance(found, list) else []


#: What a rule must name to select the creation of pods, one of each.
_CREATION = {
    "apiGroups": ("", "*"),
    "apiVersions": ("v1", "*"),
    "operations": ("CREATE", "*"),
    "resources": ("pods", "*", "*/*"),
}
#: As the manifests register it (manifests/base/admission/webhook.yaml).
SHIPPED = WebhookSetup(
    {"metadata": {"name": "zz-rdma-webhook"}},
    {
        "name": WEBHOOK_NAME,
        "namespaceSelector": {
            "matchLabels": {"rdma.lab/enable": "true"},
            "matchExpressions": [
                {"key": NAME_LABEL, "operator": "NotIn", "values": sorted(EXCLUDED)}
            ],
        },
        "matchConditions": [
            {"name": "asks-for-rdma", "expression": ASKS},
            {"name": "no-mirror-pod", "expression": NO_MIRROR},
            {"name": "not-windows", "expression": NOT_WINDOWS},
        ],
        "rules": [
            {
                "apiGroups": [""],
                "apiVersions": ["v1"],
                "operations": ["CREATE"],
                "resources": ["pods"],
                "scope": "Namespaced",
            }
        ],
    },
)
