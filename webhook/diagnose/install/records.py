"""The objects of an installation as records of the fields that the checks read."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated

from pydantic import BeforeValidator, Field

from webhook.kube.objects import Conditions, KubernetesObject, Manifest, Named, PodRecord
from webhook.kube.records import Flag, Items, LenientObject, Number, Presence, Text, Texts, Values


def _texts_of(value: object) -> tuple[str, ...]:
    items = value if isinstance(value, list) else ()
    return tuple(item for item in items if isinstance(item, str))


#: The strings of a list.
Words = Annotated[tuple[str, ...], BeforeValidator(_texts_of)]


def items_of(listed: Manifest | None) -> Iterator[Manifest]:
    """Yield the objects of a list."""
    items = (listed or {}).get("items")
    yield from (item for item in items if isinstance(item, dict)) if isinstance(items, list) else ()


# The Deployment, its pods, and its Service.


class _Container(LenientObject):
    args: Words = ()


class _TemplateSpec(LenientObject):
    containers: Items[_Container] = ()


class _Template(LenientObject):
    spec: _TemplateSpec = Field(default_factory=_TemplateSpec)


class _DeploymentSpec(LenientObject):
    replicas: Number = 0
    template: _Template = Field(default_factory=_Template)


class _DeploymentStatus(LenientObject):
    ready_replicas: Number = 0
    updated_replicas: Number = 0


class DeploymentRecord(KubernetesObject):
    """The Deployment of the replicas."""

    spec: _DeploymentSpec = Field(default_factory=_DeploymentSpec)
    status: _DeploymentStatus = Field(default_factory=_DeploymentStatus)

    @property
    def reads_certificate_files(self) -> bool:
        """Whether another program issues the certificates."""
        containers = self.spec.template.spec.containers
        return any(
            word.startswith("--tls-cert") for container in containers for word in container.args
        )


def running_pods(pods: Manifest | None) -> list[PodRecord]:
    """Return the pods that run and are not being deleted."""
    records = (PodRecord.read(pod) for pod in items_of(pods))
    return [pod for pod in records if pod.status.phase == "Running" and not pod.metadata.is_deleted]


def waiting_reasons(pods: Manifest | None) -> list[str]:
    """Return why containers of the pods have not started: "webhook-a waits: ImagePullBackOff"."""
    return [
        f"{pod.metadata.name} waits: {waiting.reason}"
        for pod in map(PodRecord.read, items_of(pods))
        for container in pod.status.container_statuses
        if (waiting := container.state.waiting) is not None and waiting.reason
    ]


class _EndpointConditions(LenientObject):
    ready: object = None


class _Endpoint(LenientObject):
    conditions: _EndpointConditions = Field(default_factory=_EndpointConditions)


class _EndpointSlice(LenientObject):
    endpoints: Items[_Endpoint] = ()


def ready_endpoints(slices: Manifest | None) -> int:
    """Count the endpoints that are ready, or whose readiness is unknown."""
    records = map(_EndpointSlice.model_validate, items_of(slices))
    return sum(
        endpoint.conditions.ready is not False
        for record in records
        for endpoint in record.endpoints
    )


# The Lease, with the times of its last write by two clocks.


class _ManagedEntry(LenientObject):
    manager: Text = ""
    time: Text = ""


class _LeaseMetadata(LenientObject):
    managed_fields: Items[_ManagedEntry] = ()


class _LeaseSpec(LenientObject):
    holder_identity: Text = ""
    renew_time: Text = ""


class LeaseRecord(LenientObject):
    """The Lease."""

    metadata: _LeaseMetadata = Field(default_factory=_LeaseMetadata)
    spec: _LeaseSpec = Field(default_factory=_LeaseSpec)

    def written_at(self, manager: str) -> str:
        """Return when a manager last wrote, by the API server's clock; "" if it never did."""
        entries = self.metadata.managed_fields
        return max((entry.time for entry in entries if entry.manager == manager), default="")


# The FabricConfiguration.


class _ObservedCondition(LenientObject):
    type: Text = ""
    status: Text = ""
    reason: Text = ""
    message: Text = ""
    observed_generation: Number = 0


class _ConfigurationMetadata(LenientObject):
    generation: Number = 0


class _ConfigurationStatus(LenientObject):
    conditions: Items[_ObservedCondition] = ()
    fabric_names: Text = ""
    nodes: Number = 0
    problems: Number = 0


class _ConfigurationSpec(LenientObject):
    fabrics: Items[Named] = ()


class ConfigurationRecord(LenientObject):
    """The FabricConfiguration."""

    metadata: _ConfigurationMetadata = Field(default_factory=_ConfigurationMetadata)
    spec: _ConfigurationSpec = Field(default_factory=_ConfigurationSpec)
    status: _ConfigurationStatus = Field(default_factory=_ConfigurationStatus)


# Admission policies and their bindings.


class _NamedRule(LenientObject):
    resources: Words = ()


class _MatchConstraints(LenientObject):
    resource_rules: Items[_NamedRule] = ()


class _MatchCondition(LenientObject):
    name: Text = ""
    expression: Text = ""


class _PolicySpec(LenientObject):
    failure_policy: Text = ""
    match_constraints: _MatchConstraints = Field(default_factory=_MatchConstraints)
    match_conditions: Items[_MatchCondition] = ()


class PolicyRecord(LenientObject):
    """A ValidatingAdmissionPolicy."""

    spec: _PolicySpec = Field(default_factory=_PolicySpec)

    @property
    def conditions(self) -> tuple[str, ...]:
        """The expressions of its matchConditions, with single spaces."""
        return tuple(" ".join(entry.expression.split()) for entry in self.spec.match_conditions)

    @property
    def resources(self) -> frozenset[str]:
        """The resources that its rules match."""
        rules = self.spec.match_constraints.resource_rules
        return frozenset(name for rule in rules for name in rule.resources)


class _BindingSpec(LenientObject):
    policy_name: Text = ""
    validation_actions: Words = ()
    match_resources: Presence = False


class BindingRecord(LenientObject):
    """A ValidatingAdmissionPolicyBinding."""

    spec: _BindingSpec = Field(default_factory=_BindingSpec)


# A namespace, and the CustomResourceDefinition.


class _Labels(LenientObject):
    labels: Texts = Field(default_factory=dict)


class NamespaceRecord(LenientObject):
    """A namespace."""

    metadata: _Labels = Field(default_factory=_Labels)


class _Version(LenientObject):
    name: Text = ""
    served: Flag = False


class _DefinitionSpec(LenientObject):
    versions: Items[_Version] = ()


class DefinitionRecord(LenientObject):
    """A CustomResourceDefinition."""

    spec: _DefinitionSpec = Field(default_factory=_DefinitionSpec)
    status: Conditions = Field(default_factory=Conditions)


class _Annotations(LenientObject):
    annotations: Values = Field(default_factory=dict)


class TriedPodRecord(LenientObject):
    """The pod in the answer to a dry run."""

    metadata: _Annotations = Field(default_factory=_Annotations)
