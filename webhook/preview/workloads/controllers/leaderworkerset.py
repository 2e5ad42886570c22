"""LeaderWorkerSet: LeaderWorkerSet (leaderworkerset.x-k8s.io/v1), by its controller and webhook.

Source: kubernetes-sigs/lws v0.7.0, pkg/controllers/leaderworkerset_controller.go and
pod_controller.go (labels and annotations of the StatefulSets' templates), pkg/webhooks/
pod_webhook.go, pkg/utils/pod/pod_utils.go (AddLWSVariables: ours stand first, and replace the
user's of the same name).

Left out, since no decision reads them: hashes in labels, subgroups, host names, the affinity
between pods that exclusive placement adds, the variables for TPUs.
"""

from __future__ import annotations

from typing import Any

from webhook.decide.draft import Draft
from webhook.model.path import Path
from webhook.model.pod import items
from webhook.preview.workloads.controllers.workload import (
    CONTAINERS,
    INIT_CONTAINERS,
    Controller,
    Live,
    Workload,
    add_annotations,
    add_labels,
    variables,
    word,
)

_LEADERWORKERSET_PREFIX = "leaderworkerset.sigs.k8s.io"
_GROUP = ("spec", "leaderWorkerTemplate")
_LEADER: Path = (*_GROUP, "leaderTemplate")
_WORKER: Path = (*_GROUP, "workerTemplate")


def _live_groups(workload: Workload) -> tuple[Live, ...]:
    if workload.where not in (_LEADER, _WORKER):
        return (Live(workload.pod),)
    # Without a template of its own, the leader is made from the workers' and differs in its index.
    index = "0" if workload.where == _LEADER else "1"
    size = word(workload.value, (*_GROUP, "size"), "1")
    draft = Draft(workload.pod)
    add_labels(
        draft,
        {
            f"{_LEADERWORKERSET_PREFIX}/name": workload.name,
            f"{_LEADERWORKERSET_PREFIX}/group-index": "0",
            f"{_LEADERWORKERSET_PREFIX}/worker-index": index,
        },
    )
    add_annotations(draft, {f"{_LEADERWORKERSET_PREFIX}/size": size})
    leader = f"{workload.name}-0.{workload.name}.{workload.namespace}"
    ours = variables(LWS_LEADER_ADDRESS=leader, LWS_GROUP_SIZE=size, LWS_WORKER_INDEX=index)
    _put_first(draft, ours)
    return (Live(draft.pod),)


def _put_first(draft: Draft, ours: list[dict[str, Any]]) -> None:
    names = [one["name"] for one in ours]
    for field in (INIT_CONTAINERS, CONTAINERS):
        for index, container in enumerate(items(draft.pod, field)):
            others = [one for one in items(container, ("env",)) if one.get("name") not in names]
            draft.set((*field, index, "env"), [*ours, *others])


LEADERWORKERSET = Controller(
    name="LeaderWorkerSet",
    kinds=frozenset({"leaderworkerset.x-k8s.io/v1 LeaderWorkerSet"}),
    adds="labels and an annotation with name, index and size of the group, and `LWS_*` variables",
    live=_live_groups,
)
