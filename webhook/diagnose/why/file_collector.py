"""The evidence about the pods in a list of objects, as printed by `kubectl get -o yaml`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from webhook.admission.registration import registrations_in
from webhook.diagnose.why.config_map_values import changed_config_maps, unchanged_config_maps
from webhook.diagnose.why.evidence import PodEvidence
from webhook.errors import ShapeError
from webhook.kube.objects import Event, KubernetesObject, Manifest, NodeRecord, PodRecord
from webhook.model.fabric import CompiledConfiguration
from webhook.model.facts import Facts
from webhook.model.pod import MAX_OWNERS


def objects_of(value: object) -> Iterator[Manifest]:
    """Yield the objects of a document; a List yields each of its items."""
    if not isinstance(value, dict):
        return
    kind, items = value.get("kind"), value.get("items")
    if isinstance(kind, str) and kind.endswith("List") and isinstance(items, list):
        for item in items:
            # The items of a typed list, such as PodList, have no kind.
            if isinstance(item, dict):
                yield from objects_of({"kind": kind.removesuffix("List"), **item})
    else:
        yield value


def collect_from_objects(
    manifests: Sequence[Manifest], namespace: str, configuration: CompiledConfiguration | None
) -> list[PodEvidence]:
    """Return the evidence about each pod among the objects.

    `namespace` is the default for pods without a namespace.
    """
    objects = [_object(manifest, namespace) for manifest in manifests]
    index = _Index(objects)
    facts = Facts().with_objects(
        [manifest for manifest in manifests if _is_fact(manifest)], namespace
    )
    pods = (item for item in objects if isinstance(item, PodRecord))
    return [index.evidence(pod, configuration, facts) for pod in pods]


def _is_fact(item: Manifest) -> bool:
    """Return whether an object is a fact for a decision, in the shape that a cluster has."""
    try:
        Facts().with_objects([item], "")
    except ShapeError:
        return False
    return True


def _object(manifest: Manifest, namespace: str) -> KubernetesObject:
    """Read an object; a pod without a namespace is in `namespace`."""
    if manifest.get("kind") != "Pod":
        return KubernetesObject.read(manifest)
    metadata = manifest.get("metadata")
    if not isinstance(metadata, dict) or metadata.get("namespace"):
        return PodRecord.read(manifest)
    return PodRecord.read({**manifest, "metadata": {**metadata, "namespace": namespace}})


class _Index:
    """Objects by kind and name, and events by the object that they are about."""

    def __init__(self, objects: Sequence[KubernetesObject]) -> None:
        self._named = {_name(item): item for item in objects if item.kind != "Event"}
        self._events: dict[_Name, list[Event]] = {}
        for event in map(Event.model_validate, _of_kind(objects, "Event")):
            self._events.setdefault((event.about.kind, event.about.name), []).append(event)
        configurations = _of_kind(objects, "MutatingWebhookConfiguration")
        self._registrations = registrations_in(configurations) if configurations else None
        self._config_maps = _of_kind(objects, "ConfigMap")
        self._nodes = tuple(map(NodeRecord.model_validate, _of_kind(objects, "Node"))) or None

    def evidence(
        self, pod: PodRecord, configuration: CompiledConfiguration | None, facts: Facts
    ) -> PodEvidence:
        """Return the evidence about a pod."""
        owners = tuple(self._owners(pod))
        about = [
            event
            for item in (pod, *owners)
            for event in self._events.get(_name(item), ())
            if event.concerns(item)
        ]
        return PodEvidence(
            pod=pod,
            namespace=self._named.get(("Namespace", pod.metadata.namespace or "default")),
            owners=owners,
            events=in_order(about) if self._events else None,
            registrations=self._registrations,
            nodes=self._nodes,
            includes_own_node=False,
            placement_nodes=facts.nodes,
            configuration=configuration,
            facts=facts,
            config_maps=unchanged_config_maps(pod, self._config_maps),
            changed_config_maps=changed_config_maps(pod, self._config_maps),
        )

    def _owners(self, item: KubernetesObject) -> Iterator[KubernetesObject]:
        for _ in range(MAX_OWNERS):
            controller = item.metadata.controller
            if controller is None:
                return
            owner = self._named.get((controller.kind, controller.name))
            if owner is None:
                return
            yield owner
            item = owner


_Name = tuple[str, str]


def _name(item: KubernetesObject) -> _Name:
    return item.kind, item.metadata.name


def _of_kind(objects: Iterable[KubernetesObject], kind: str) -> list[Manifest]:
    return [item.manifest for item in objects if item.kind == kind]


def in_order(events: Iterable[Event]) -> tuple[Event, ...]:
    """Return events, oldest first."""
    return tuple(sorted(events, key=lambda event: event.time))
