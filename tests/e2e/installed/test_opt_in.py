"""Pods without opt-in cost no call; a wrong opt-in is reported, also in controllers' events."""

from __future__ import annotations

from collections.abc import Callable, Iterator

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

    def create_seven() -> None:
        for target in (space, unlabeled):
            target.proposed(target.pod("silent", annotations={}))
            target.proposed(target.pod("refused", annotations={ENABLE: "false"}))
            target.proposed(target.pod("near", annotations={"rdma.lab/enabled": "true"}))
        unlabeled.proposed(unlabeled.pod("asks"))

    until(lambda: costs_nothing(webhook, create_seven))

    before = settled_calls(webhook)
    space.create(space.pod("asks"))
    after = settled_calls(webhook)
    assert after.api_server > before.api_server
    assert after.ours - before.ours == after.api_server - before.api_server
    space.delete("asks")


def test_a_controller_that_did_not_opt_in_costs_no_call(webhook: Webhook, space: Space) -> None:
    """The pods of a ReplicaSet whose template has no annotation cause no call either."""

    def create_three() -> None:
        space.create(_replica_set(space, "silent-set", {}))
        pods = ("get", "pods", "--selector=app=silent-set", "--output=name")
        until(lambda: len(space.kubectl(*pods).split()) == 3)

    def create_and_delete() -> bool:
        silent = costs_nothing(webhook, create_three)
        space.kubectl("delete", "replicaset", "silent-set", "--cascade=foreground")
        return silent

    until(create_and_delete)


def costs_nothing(webhook: Webhook, create: Callable[[], None]) -> bool:
    """Return whether nobody called while pods were created; others might have, by chance."""
    before = settled_calls(webhook)
    create()
    return calls(webhook) == before


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
    return f'annotation {ENABLE} is \'{value}\', but it must be "true" or "false"'


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
