"""Pods without opt-in cost no call; a wrong opt-in is reported, also in controllers' events."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.cluster.install import Webhook
from tests.e2e.documents import ENABLE, make_namespaces, namespace
from tests.e2e.installed.calls import calls, settled_calls
from tests.e2e.installed.space import Space
from tests.waiting import until

INVALID = {"shouted": "True", "yes": "yes", "empty": ""}


@pytest.fixture(scope="module")
def unlabeled(space: Space) -> Iterator[Space]:
    """Make a namespace without the label."""
    unlabeled = Space(space.cluster, f"{space.name}-not", space.image)
    make_namespaces(unlabeled.cluster, namespace(unlabeled.name, None))
    yield unlabeled
    unlabeled.cluster.kubectl("delete", "namespace", unlabeled.name, "--wait=false")


def test_a_pod_that_did_not_opt_in_costs_no_call(
    webhook: Webhook, space: Space, unlabeled: Space
) -> None:
    """Seven creations cause no call, by the API server's count and ours; an eighth causes one."""
    before = settled_calls(webhook)
    for target in (space, unlabeled):
        target.create(
            target.pod("silent", annotations={}),
            target.pod("refused", annotations={ENABLE: "false"}),
            target.pod("near", annotations={"rdma.lab/enabled": "true"}),
        )
    unlabeled.create(unlabeled.pod("asks"))
    assert calls(webhook) == before

    space.create(space.pod("asks"))
    after = calls(webhook)
    assert after.api_server > before.api_server
    assert after.ours - before.ours == after.api_server - before.api_server
    for target in (space, unlabeled):
        target.delete("silent", "refused", "near", "asks")


def test_a_controller_that_did_not_opt_in_costs_no_call(webhook: Webhook, space: Space) -> None:
    """The pods of a ReplicaSet whose template has no annotation cause no call either."""
    before = settled_calls(webhook)
    space.create(_replica_set(space, "silent-set", {}))
    until(lambda: len(space.kubectl("get", "pods", "--selector=app=silent-set").split("\n")) > 3)
    assert calls(webhook) == before
    space.kubectl("delete", "replicaset", "silent-set")


@pytest.mark.parametrize("value", INVALID.values())
def test_other_values_are_denied_with_the_reason(space: Space, value: str) -> None:
    """The user who creates the pod learns what is wrong, and which values are right."""
    printed = space.create(space.pod("wrong", annotations={ENABLE: value}), check=False)
    assert 'admission webhook "pods.rdma.lab" denied the request: ' in printed
    assert _message(value) in printed


def test_events_of_controllers_report_other_values(space: Space) -> None:
    """No user sees the answers for a ReplicaSet's pods, so its events have the message."""
    sets = {name: _replica_set(space, name, {ENABLE: value}) for name, value in INVALID.items()}
    space.create(*sets.values())
    for name, value in INVALID.items():
        assert _message(value) in space.event(name, "FailedCreate")
    space.kubectl("delete", "replicaset", *sets)


def _message(value: str) -> str:
    return f'annotation {ENABLE} is \'{value}\': it must be "true" or "false"'


def _replica_set(space: Space, name: str, annotations: dict[str, str]) -> dict[str, object]:
    pod = space.pod(name, annotations=annotations)
    labels = {"app": name}
    return {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": {"name": name, "namespace": space.name},
        "spec": {
            "replicas": 3,
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels, "annotations": annotations},
                "spec": {**pod["spec"], "terminationGracePeriodSeconds": 0},
            },
        },
    }
