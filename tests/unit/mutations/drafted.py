"""Pods by hand, one mutation run on them, and the same again on what the API server made of it."""

from __future__ import annotations

import json
from copy import deepcopy
from typing import Any

import jsonpatch

from webhook.decision.annotations import Requests
from webhook.decision.draft import Draft
from webhook.decision.facts import NamespaceFacts
from webhook.decision.scope import Mutation, Scope, Target
from webhook.fabric.records import Defaults, Fabric, index
from webhook.mpi.commands import Commands
from webhook.pod.env import Environments
from webhook.pod.manifest import PodManifest, containers_of

GPU = "nvidia.com/gpu"


def container(name: str = "trainer", gpus: int = 0, **fields: Any) -> dict[str, Any]:
    """Make a container that requests whole GPUs."""
    resources = {"resources": {"limits": {GPU: str(gpus)}}} if gpus else {}
    return {"name": name, "image": "lab/train", **resources, **fields}


def pod(
    *containers: dict[str, Any],
    annotations: dict[str, str] | None = None,
    labels: dict[str, str] | None = None,
    **spec: Any,
) -> PodManifest:
    """Make a pod that opted in."""
    written = {"rdma.lab/enable": "true", **(annotations or {})}
    metadata = {"name": "p", "annotations": written, "labels": labels or {}}
    return {"metadata": metadata, "spec": {"containers": list(containers), **spec}}


def env(**values: str) -> list[dict[str, str]]:
    """Write an environment."""
    return [{"name": name, "value": value} for name, value in values.items()]


def run(
    mutation: Mutation,
    manifest: PodManifest,
    *,
    fabric: Fabric | None = None,
    defaults: Defaults | None = None,
    requests: Requests | None = None,
    allowed: tuple[str, ...] = (),
    shared_gpu: bool = False,
) -> Draft:
    """Run one mutation with every app container as its target; its operations must be true."""
    before = json.loads(json.dumps(manifest))  # no two places share an object, as on the wire
    containers = tuple(containers_of(manifest))
    draft = Draft(manifest)
    draft.mutation = mutation.name
    scope = Scope(
        fabric=fabric,
        targets=tuple(
            Target(one.name, one.path, one.kind, _gpus(one.manifest), shared_gpu)
            for one in containers
            if one.kind == "app"
        ),
        launchers=(),
        requests=requests or Requests(),
        namespace=NamespaceFacts(name="lab"),
        fabrics=index(
            (fabric,) if fabric else (),
            defaults=defaults,
            nvlink_namespaces=frozenset(allowed),
        ),
        original=manifest,
        containers=containers,
        commands=Commands(manifest),
        env=Environments(manifest),
        host_network=manifest["spec"].get("hostNetwork") is True,
        annotations=manifest["metadata"]["annotations"],
    )
    mutation.mutate(draft, scope)
    assert manifest == before
    assert jsonpatch.apply_patch(before, deepcopy(draft.ops)) == draft.pod
    known = {reason.code for reason in mutation.reasons}
    assert {outcome.reason.code for outcome in draft.outcomes} <= known
    return draft


def _gpus(manifest: dict[str, Any]) -> int:
    return int(manifest.get("resources", {}).get("limits", {}).get(GPU, 0))


def verdicts(draft: Draft) -> list[str]:
    """Write the outcomes as `container status Reason`."""
    return [f"{o.container} {o.status} {o.reason.code}".lstrip() for o in draft.outcomes]


def codes(draft: Draft) -> list[str]:
    """List the reasons for what was skipped and warned about: those of the status annotation."""
    told = [o for o in draft.outcomes if o.status in ("skipped", "warned") and not o.reason.quiet]
    return [f"{o.container} {o.status} {o.reason.code}" for o in told]


def defaulted(manifest: PodManifest) -> PodManifest:
    """Return the pod as the API server hands it out again, with its defaults."""
    manifest = deepcopy(manifest)
    for volume in manifest["spec"].get("volumes") or ():
        if "downwardAPI" in volume:
            volume["downwardAPI"].setdefault("defaultMode", 420)
            for item in volume["downwardAPI"]["items"]:
                item["fieldRef"].setdefault("apiVersion", "v1")
    for one in manifest["spec"]["containers"]:
        one.setdefault("terminationMessagePath", "/dev/termination-log")
        for variable in one.get("env") or ():
            if variable.get("value") == "":
                del variable["value"]
            if "fieldRef" in variable.get("valueFrom", {}):
                variable["valueFrom"]["fieldRef"].setdefault("apiVersion", "v1")
    return manifest
