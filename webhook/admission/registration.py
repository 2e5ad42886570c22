"""The registration of a webhook: its entry in a webhook configuration.

Objects of a cluster or a file may have any shape; a field with a wrong type counts as absent.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from webhook.admission.review import mapping_at, string_at

#: The webhook of the manifests; the name of the configuration may differ.
WEBHOOK_NAME = "pods.rdma.lab"
#: A message for the creator of a pod without fabrics, after "failed calling webhook …: " and before
#: the reason.
NO_FABRICS_MESSAGE = "rdma-webhook has no fabrics, so pods with rdma.lab/enable cannot be created: "
#: The API server gives every namespace this label.
NAME_LABEL = "kubernetes.io/metadata.name"
#: The namespace that this webhook runs in; it must never wait for itself.
OWN_NAMESPACE = "rdma-webhook"
EXCLUDED_NAMESPACES = frozenset({"kube-system", "kube-public", "kube-node-lease", OWN_NAMESPACE})
OPT_IN_CONDITION = (
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


class Registration(NamedTuple):
    """A webhook with the webhook configuration that contains it."""

    webhook_configuration: Mapping[str, object]
    webhook: Mapping[str, object]
    webhook_configuration_name: str  #: "" if it has none
    #: The name and the expression of each matchCondition, the latter with single spaces.
    conditions: tuple[tuple[str, str], ...]
    rules: tuple[WebhookRule, ...]
    #: The requirements on the labels of namespaces and pods.
    namespace_selector: tuple[Requirement, ...]
    object_selector: tuple[Requirement, ...]

    @property
    def selects_creation_of_pods(self) -> bool:
        """Whether a rule selects the creation of pods."""
        return any(rule.selects_creation_of_pods for rule in self.rules)

    @property
    def creation_time(self) -> str:
        """When the webhook configuration was created; "" if unknown."""
        return string_at(mapping_at(self.webhook_configuration, "metadata"), "creationTimestamp")

    @property
    def failure_policy(self) -> str:
        """Ignore or Fail; "" if unknown."""
        return string_at(self.webhook, "failurePolicy")


class Resource(NamedTuple):
    """A resource of the API."""

    group: str
    version: str
    name: str
    #: Namespaced or Cluster.
    scope: str


PODS = Resource("", "v1", "pods", "Namespaced")
CONFIGURATIONS = Resource("rdma.lab", "v1alpha1", "fabricconfigurations", "Cluster")


class WebhookRule(NamedTuple):
    """A rule, with the operations and resources that it selects."""

    api_groups: tuple[str, ...]
    api_versions: tuple[str, ...]
    operations: tuple[str, ...]
    resources: tuple[str, ...]
    scope: object

    @property
    def selects_creation_of_pods(self) -> bool:
        """Whether the rule selects the creation of pods."""
        return self.selects("CREATE", PODS)

    def selects(self, operation: str, resource: Resource) -> bool:
        """Return whether the rule selects an operation on a resource."""
        return (
            not {resource.group, "*"}.isdisjoint(self.api_groups)
            and not {resource.version, "*"}.isdisjoint(self.api_versions)
            and not {operation, "*"}.isdisjoint(self.operations)
            and not {resource.name, "*", "*/*"}.isdisjoint(self.resources)
            and self.scope in ("*", resource.scope)
        )


class Requirement(NamedTuple):
    """One requirement of a label selector."""

    key: str
    operator: str
    values: tuple[str, ...] = ()

    def met(self, labels: Mapping[str, str]) -> bool:
        """Return whether labels meet the requirement; an unknown operator is never met.

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
        """Return the requirement in words that complete "the namespace needs"."""
        match self.operator, self.values:
            case "In", (value,):
                return f'the label {self.key}: "{value}"'
            case "Exists", _:
                return f"a label {self.key}"
            case "DoesNotExist", _:
                return f"to be without the label {self.key}"
            case _:
                word = {"In": "in", "NotIn": "not in"}.get(self.operator, self.operator)
                return f"a label {self.key} {word} ({', '.join(self.values)})"


def registrations_in(configurations: Iterable[Mapping[str, object]]) -> tuple[Registration, ...]:
    """Return our webhook from each of these MutatingWebhookConfigurations that has it."""
    return registrations_named(WEBHOOK_NAME, configurations)


def registrations_named(
    name: str, configurations: Iterable[Mapping[str, object]]
) -> tuple[Registration, ...]:
    """Return the webhooks of a name in these webhook configurations of either kind."""
    return tuple(
        read_registration(configuration, webhook)
        for configuration in configurations
        for webhook in _mappings(configuration, "webhooks")
        if webhook.get("name") == name
    )


def read_registration(
    webhook_configuration: Mapping[str, object], webhook: Mapping[str, object]
) -> Registration:
    """Read a webhook and the webhook configuration that contains it."""
    return Registration(
        webhook_configuration=webhook_configuration,
        webhook=webhook,
        webhook_configuration_name=string_at(mapping_at(webhook_configuration, "metadata"), "name"),
        conditions=tuple(map(_condition, _mappings(webhook, "matchConditions"))),
        rules=tuple(map(_rule, _mappings(webhook, "rules"))),
        namespace_selector=_requirements(mapping_at(webhook, "namespaceSelector")),
        object_selector=_requirements(mapping_at(webhook, "objectSelector")),
    )


def _condition(item: Mapping[str, object]) -> tuple[str, str]:
    return str(item.get("name")), " ".join(str(item.get("expression")).split())


def _rule(item: Mapping[str, object]) -> WebhookRule:
    return WebhookRule(
        api_groups=_strings(item, "apiGroups"),
        api_versions=_strings(item, "apiVersions"),
        operations=_strings(item, "operations"),
        resources=_strings(item, "resources"),
        scope=item.get("scope", "*"),
    )


def _requirements(selector: Mapping[str, object]) -> tuple[Requirement, ...]:
    labels = mapping_at(selector, "matchLabels")
    return (
        *(Requirement(key, "In", (str(value),)) for key, value in labels.items()),
        *map(_requirement, _mappings(selector, "matchExpressions")),
    )


def _requirement(item: Mapping[str, object]) -> Requirement:
    return Requirement(str(item.get("key")), str(item.get("operator")), _strings(item, "values"))


def _mappings(node: Mapping[str, object], key: str) -> list[Mapping[str, object]]:
    items = node.get(key)
    return [item for item in items if isinstance(item, dict)] if isinstance(items, list) else []


def _strings(node: Mapping[str, object], key: str) -> tuple[str, ...]:
    items = node.get(key)
    return tuple(item for item in items if isinstance(item, str)) if isinstance(items, list) else ()


#: The registration in the manifests (manifests/base/admission/webhook.yaml).
SHIPPED = read_registration(
    {"metadata": {"name": "zz-rdma-webhook"}},
    {
        "name": WEBHOOK_NAME,
        "namespaceSelector": {
            "matchLabels": {"rdma.lab/enable": "true"},
            "matchExpressions": [
                {"key": NAME_LABEL, "operator": "NotIn", "values": sorted(EXCLUDED_NAMESPACES)}
            ],
        },
        "matchConditions": [
            {"name": "asks-for-rdma", "expression": OPT_IN_CONDITION},
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
