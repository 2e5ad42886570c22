"""Run a single mutation on every app container of a pod, and list its outcomes."""

from __future__ import annotations

import json
from copy import deepcopy
from typing import Any

import jsonpatch

from webhook.decide.analysis import Mutation, PodAnalysis, Target
from webhook.decide.draft import Draft
from webhook.decide.launchers.commands import Commands
from webhook.decide.settings.reader import SettingsReader
from webhook.model.annotations import UserAnnotations
from webhook.model.claims import claims_of
from webhook.model.fabric import Defaults, Fabric, build_configuration
from webhook.model.facts import NamespaceFacts
from webhook.model.pod import Pod, PodManifest


def run(
    mutation: Mutation,
    manifest: PodManifest,
    *,
    fabric: Fabric | None = None,
    defaults: Defaults | None = None,
    annotations: UserAnnotations | None = None,
    allowed: tuple[str, ...] = (),
    partial_gpu: bool = False,
) -> Draft:
    """Run a mutation on every app container; check that its operations make the new pod."""
    before = json.loads(json.dumps(manifest))  # no two places share an object, as on the wire
    pod = Pod(manifest)
    draft = Draft(manifest, pod)
    draft.mutation_name = mutation.name
    analysis = PodAnalysis(
        fabric=fabric,
        targets=tuple(
            Target(
                container.name,
                container.path,
                container.kind,
                _gpus(container.manifest),
                partial_gpu,
            )
            for container in pod.containers
            if container.kind == "app"
        ),
        launchers=(),
        annotations=annotations or UserAnnotations(),
        namespace=NamespaceFacts(name="lab"),
        configuration=build_configuration(
            (fabric,) if fabric else (),
            defaults=defaults,
            nvlink_namespaces=frozenset(allowed),
        ),
        original=pod,
        containers={container.path: container for container in pod.containers},
        claims=claims_of(pod),
        commands=Commands(pod),
        settings_reader=SettingsReader(pod),
    )
    mutation.mutate(draft, analysis)
    assert manifest == before
    assert jsonpatch.apply_patch(before, deepcopy(draft.ops)) == draft.pod
    declared = {reason.code for reason in mutation.reasons}
    assert {outcome.reason.code for outcome in draft.outcomes} <= declared
    return draft


def _gpus(manifest: dict[str, Any]) -> int:
    return int(manifest.get("resources", {}).get("limits", {}).get("nvidia.com/v100", 0))


def outcome_lines(draft: Draft) -> list[str]:
    """Write each outcome as `container status Reason`."""
    return [f"{o.container} {o.status} {o.reason.code}".lstrip() for o in draft.outcomes]


def codes(draft: Draft) -> list[str]:
    """List the skips and warnings that the status annotation would have."""
    reported = [
        o for o in draft.outcomes if o.status in ("skipped", "warned") and o.reason.reportable
    ]
    return [f"{o.container} {o.status} {o.reason.code}" for o in reported]
