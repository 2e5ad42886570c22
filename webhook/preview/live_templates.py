"""The templates of the workloads that live in a cluster, read with the rights of whoever asks.

A live pod is already patched, so it cannot be decided on again; its owner's template can. The
workloads are those that own a pod that opted in, of whatever kind, and those of Kubernetes' own
kinds without any pod at the moment.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from webhook.kube.api import ObjectReads
from webhook.kube.cluster_reads import PermittedReads, ReadObject
from webhook.kube.owner_chain import OwnerChain
from webhook.model.annotations import ENABLE
from webhook.model.facts import LABEL, key_of
from webhook.model.owner_references import controller_reference
from webhook.model.pod import at
from webhook.preview.workloads.templates import templates_of

#: Kubernetes' own kinds with a pod template: path, resource, kind.
_KINDS = (
    ("apps/v1", "deployments", "Deployment"),
    ("apps/v1", "statefulsets", "StatefulSet"),
    ("apps/v1", "daemonsets", "DaemonSet"),
    ("batch/v1", "jobs", "Job"),
    ("batch/v1", "cronjobs", "CronJob"),
)
_NAMESPACE = "/api/v1/namespaces"


class LiveTemplates(NamedTuple):
    """Objects with templates whose pods opted in, and sentences on what is not among them."""

    objects: list[ReadObject]
    namespaces: list[str]
    notes: list[str]


def live_templates(reads: ObjectReads, namespace: str = "") -> LiveTemplates:
    """Read the workloads of a namespace, or with "" of all that have the webhook's label."""
    return _Reading(PermittedReads(reads)).all(namespace)


class _Reading:
    def __init__(self, permitted: PermittedReads) -> None:
        self._permitted = permitted
        self._notes: list[str] = []

    def all(self, namespace: str) -> LiveTemplates:
        spaces = [namespace] if namespace else self._labelled()
        objects = [one for space in spaces for one in self._of(space)]
        lacking = [f"{one.what}: not read: {one.said}" for one in self._permitted.unread]
        return LiveTemplates(objects, spaces, [*self._notes, *lacking])

    def _labelled(self) -> list[str]:
        query = {"labelSelector": f"{LABEL}=true"}
        found = self._permitted.list(_NAMESPACE, "the namespaces with the label", query)
        if found == []:
            self._notes.append(f"no namespace has the label {LABEL}=true: the webhook has no pods")
        return [key_of(one)[1] for one in found or ()]

    def _of(self, space: str) -> Iterator[ReadObject]:
        """Yield each workload of a namespace whose pods opted in."""
        pods = self._permitted.list(f"{_NAMESPACE}/{space}/pods", f"the pods of {space}") or []
        asking = [one for one in pods if _opted_in(one)]
        found = {_identity(one): one for one in self._owners(asking, space)}
        for version, resource, kind in _KINDS:
            path = f"/apis/{version}/namespaces/{space}/{resource}"
            for one in self._permitted.list(path, f"the {resource} of {space}") or ():
                typed = {**one, "apiVersion": version, "kind": kind}
                if controller_reference(one) is None and _templates_ask(typed):
                    found.setdefault(_identity(typed), typed)
        yield from found.values()

    def _owners(self, pods: Iterable[ReadObject], space: str) -> Iterator[ReadObject]:
        """Yield the uppermost owner with a template of each pod; count those without one."""
        chain, without = OwnerChain(self._permitted, space), 0
        for pod in pods:
            able = [one for one in chain.of(pod) if templates_of(one)]
            without += not able
            yield from able[-1:]
        if without:
            self._notes.append(
                f"{without} pod{'s' * (without != 1)} of {space}: not compared, since no template "
                "can be read that they were made from, and they are already patched"
            )


def _opted_in(pod: ReadObject) -> bool:
    return at(pod, ("metadata", "annotations", ENABLE)) not in (None, "false")


def _templates_ask(item: ReadObject) -> bool:
    return any(_opted_in(template.pod) for template in templates_of(item))


def _identity(item: ReadObject) -> tuple[str, ...]:
    """Return what tells objects apart that may be read twice; versions of a kind are one."""
    return (str(item.get("kind")), *key_of(item))
