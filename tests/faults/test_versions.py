"""Two versions of the program that use the same fabrics, while pods are created.

Another webhook changes each pod after ours, so the API server calls ours twice, often at replicas
of both versions. docs/upgrading.md describes what may then happen.

The order matters: the first tests share a rollout to the previous version, which stops halfway,
with two replicas of this version and one of the previous one. The last one completes it.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from itertools import product
from pathlib import Path

import pytest
import yaml

from tests.cluster.fabrics import apply_fabrics, stored, used, wait_until_in_use
from tests.cluster.images import previous_stand_in
from tests.cluster.install import DEPLOYMENT, NAME, Webhook
from tests.e2e.admission.neighbor import AFTER, limits_memory, running
from tests.e2e.documents import Document, make_namespaces, namespace
from tests.e2e.fabrics_bypass import patch_fabrics, unchecked
from tests.e2e.installed.load import Creations, creating
from tests.e2e.installed.space import Space
from tests.e2e.installed.test_life import Replica as Ending
from tests.e2e.installed.test_life import keep_objects
from tests.e2e.live.replica import Replica, replicas
from tests.e2e.live.test_configuration import successful
from tests.faults.conftest import Figure
from tests.faults.counts import check_none_lost
from tests.faults.expected_pods import Expectation, leaves
from tests.faults.replicas import kill, processes, settled
from tests.faults.scale import SCALE
from tests.faults.test_changes import answered
from tests.faults.versions import (
    WAITING,
    compiled,
    compiled_before,
    post,
    ready_with,
    review_of,
    roll,
)
from tests.integration.serving import review
from tests.waiting import until
from webhook.config import EXAMPLE
from webhook.model.fabric import CompiledConfiguration

#: Pods at a time, and the seconds between two moments at which the other webhook answers all calls
#: that wait. So all first calls come together, as do all second ones: the API server needs a
#: connection for each, and these lead to all replicas.
AT_ONCE, PERIOD = 24, 0.8
#: Pods that must have been decided by both versions before a load ends.
MIXED = 20
PLAIN = "faults-plain"
#: Fabrics that both versions accept, and fabrics with a field that only this one knows.
COMPATIBLE: Document = yaml.safe_load(EXAMPLE.read_text())
NEWER: Document = {**COMPATIBLE, "spec": {"fabrics": [*COMPATIBLE["spec"]["fabrics"]]}}
NEWER["spec"]["fabrics"][0] = {**NEWER["spec"]["fabrics"][0], "sharedMemory": "8Gi"}


@dataclass(frozen=True)
class Versions:
    """Both versions, and pods that are created."""

    webhook: Webhook
    previous: str
    space: Space
    folder: Path

    @property
    def newer(self) -> list[str]:
        """The names of the ready replicas of this version."""
        return ready_with(self.webhook, self.webhook.image)

    @property
    def older(self) -> list[str]:
        """The names of the ready replicas of the previous version."""
        return ready_with(self.webhook, self.previous)

    @property
    def pod(self) -> Document:
        """The pod that is created."""
        pod = self.space.pod("", "nvidia.com/v100", automountServiceAccountToken=False)
        pod["metadata"] |= {"name": None, "generateName": "versions-"}
        return pod

    @contextmanager
    def load(self) -> Iterator[Creations]:
        """Create pods during the block."""
        with creating(self.space, self.pod, self.folder, rate=0, at_once=AT_ONCE) as creations:
            yield creations

    def shared(self) -> int:
        """Count the pods whose second call met a replica that does not know the first one's."""
        reasons = self.webhook.counted("rdma_webhook_mutations_total", "reason")
        return reasons["OtherConfiguration",]

    def more_shared(self) -> None:
        """Wait until enough pods were decided by both versions."""
        before = self.shared()
        until(lambda: self.shared() >= before + MIXED)

    def judged(self, creations: Creations, *configurations: Document) -> str:
        """Check that no pod was lost, and that each is an expected one; return the figure.

        Both versions accept the last configuration.
        """
        measured = check_none_lost(creations)
        expected = self._expected(
            [compiled(configuration) for configuration in configurations],
            compiled_before(configurations[-1]),
        )
        by = Counter(
            expected.get(_text(answer.pod), "") for answer in answered(self.folder / "results.bin")
        )
        assert not by[""], by
        assert by["both"] > 0
        return f"{measured}; {by['both']} decided by both versions"

    def _expected(
        self, news: list[CompiledConfiguration], old: CompiledConfiguration
    ) -> dict[str, str]:
        """Return the texts of all possible pods, each with "one" or "both" versions."""
        expectation = Expectation(self.webhook.cluster, self.space.name, PLAIN, limits_memory)
        uniform = [(configuration, configuration) for configuration in [*news, old]]
        mixed = [*product(news, [old]), *product([old], news)]
        return {
            _text(pod): "one" if first is second else "both"
            for first, second in [*uniform, *mixed]
            for pod in expectation.pods(self.pod, first, second)
        }


def _text(pod: Document) -> str:
    """Write all leaves of a pod."""
    return json.dumps(leaves(pod), sort_keys=True)


@pytest.fixture(scope="module")
def versions(
    webhook: Webhook, space: Space, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Versions]:
    """Begin a rollout to the previous version, and restore everything afterwards."""
    webhook.cluster.skip_if_existing("an image made of that of this checkout")
    previous, folder = previous_stand_in(), tmp_path_factory.mktemp("versions")
    webhook.cluster.load(previous.archive)
    versions = Versions(webhook, previous.name, space, folder)
    make_namespaces(webhook.cluster, namespace(PLAIN, None))
    wait_until_in_use(webhook, apply_fabrics(webhook.cluster, yaml.safe_dump(COMPATIBLE)))
    with running(webhook.cluster, folder) as neighbor:
        neighbor.space, neighbor.period = space.name, PERIOD
        with neighbor.moved_in(AFTER, limits_memory, "Never"):
            until(lambda: space.proposed(versions.pod) and neighbor.answered)
            roll(webhook, previous.name, [WAITING])
            until(lambda: (len(versions.newer), len(versions.older)) == (2, 1))
            _disconnect(versions)
            yield versions
    roll(webhook, webhook.image)
    webhook.kubectl("rollout", "status", DEPLOYMENT, "--timeout=300s")
    wait_until_in_use(webhook, apply_fabrics(webhook.cluster, webhook.fabrics.read_text()))
    webhook.cluster.kubectl("delete", "namespace", PLAIN, "--wait=false")


def _disconnect(versions: Versions) -> None:
    """End the connections of the API server, which uses the same ones as long as they are enough.

    All of them lead to the replicas of this version, since they are older than the other replica.
    """
    begun = processes(versions.webhook)
    for name in versions.newer:
        kill(versions.webhook, begun[name])
        until(lambda name=name: processes(versions.webhook).get(name, begun[name]) != begun[name])  # type: ignore[misc]
    settled(versions.webhook, 3)


def _named(webhook: Webhook, names: list[str]) -> list[Replica]:
    return [replica for replica in replicas(webhook) if replica.name in names]


def _used(replica: Replica) -> str:
    return used(replica.get("/metrics")[1])


def test_a_pod_may_be_decided_by_both_versions(versions: Versions, figure: Figure) -> None:
    """Then it has the first one's decision, and only additions of the second one.

    Every other pod is what one version decides.
    """
    (older,) = _named(versions.webhook, versions.older)
    assert (
        _used(older) == compiled_before(COMPATIBLE).config_hash != compiled(COMPATIBLE).config_hash
    )
    with versions.load() as creations:
        versions.more_shared()
    figure("two versions side by side, two calls a pod", versions.judged(creations, COMPATIBLE))


def test_an_unknown_field_leaves_the_older_version_as_it_is(
    versions: Versions, figure: Figure
) -> None:
    """It keeps its last good configuration, and reports it; this version uses the new one.

    Whether an object can be applied depends on the replica that checks it, so none does here.
    """
    webhook = versions.webhook
    (older,) = _named(webhook, versions.older)
    newer = _named(webhook, versions.newer)
    answers = [
        post(webhook, replica.name, "/validate", review_of(NEWER)) for replica in (older, newer[0])
    ]
    responses = [answer.document["response"] for answer in answers]
    assert [response["allowed"] for response in responses] == [False, True]
    assert "spec.fabrics[0].sharedMemory: unknown field" in json.dumps(responses[0])
    with unchecked(webhook), versions.load() as creations:
        versions.more_shared()
        assert patch_fabrics(webhook.cluster, NEWER["spec"]["fabrics"]).code == 200
        until(lambda: {_used(replica) for replica in newer} == {compiled(NEWER).config_hash})
        until(lambda: not successful(older))
        versions.more_shared()
    assert _used(older) == compiled_before(COMPATIBLE).config_hash
    code, lines = older.get("/readyz")
    assert code == 200
    assert "; still in use, because a newer one cannot be used: " in lines
    assert "spec.fabrics[0].sharedMemory: unknown field" in lines
    measured = versions.judged(creations, NEWER, COMPATIBLE)
    figure("a field that the older version does not know", measured)
    _status_is_its_writers(versions)


def _status_is_its_writers(versions: Versions) -> None:
    """Wait until the status has the result of the replica that holds the Lease."""
    lease = f"/apis/coordination.k8s.io/v1/namespaces/{NAME}/leases/{NAME}"

    def agreed() -> bool:
        holder = json.loads(versions.webhook.read(lease))["spec"].get("holderIdentity")
        configuration = stored(versions.webhook)
        status = configuration.get("status", {})
        valid = {
            condition["status"]
            for condition in status.get("conditions", ())
            if condition["type"] == "Valid"
        }
        current = status.get("observedGeneration") == configuration["metadata"]["generation"]
        return current and valid == {"True" if holder in versions.newer else "False"}

    until(agreed)


def test_an_older_replica_that_starts_then_uses_the_last_good_one(versions: Versions) -> None:
    """It cannot use the newest kept spec, and uses the one before."""
    webhook = versions.webhook
    (older,) = _named(webhook, versions.older)
    container = processes(webhook)[older.name]
    kill(webhook, container)
    until(lambda: processes(webhook).get(older.name, container) != container)
    until(lambda: older.get("/readyz")[0] == 200)
    pod = review(versions.pod, namespace=versions.space.name)
    assert _used(older) == compiled_before(COMPATIBLE).config_hash
    assert not successful(older)
    assert post(webhook, older.name, "/mutate", pod).code == 200

    container = processes(webhook)[older.name]
    apply_fabrics(webhook.cluster, yaml.safe_dump(COMPATIBLE))
    until(lambda: successful(older))
    assert _used(older) == compiled_before(COMPATIBLE).config_hash
    newer = _named(webhook, versions.newer)
    until(lambda: {_used(replica) for replica in newer} == {compiled(COMPATIBLE).config_hash})
    assert processes(webhook)[older.name] == container


def test_a_rollback_and_an_upgrade_lose_no_pod(versions: Versions, figure: Figure) -> None:
    """The rollout continues to its end, and then back to this version, several times in long runs.

    failurePolicy is Fail, so one unanswered call is one rejected pod. The old processes end by
    themselves, with exit code 0, before the kubelet would kill them. Only then fabrics are applied
    that have the new field.
    """
    webhook, old = versions.webhook, list[Ending]()
    with ExitStack() as stack:
        with versions.load() as creations:
            for _ in range(SCALE.restarts):
                old += stack.enter_context(keep_objects(webhook, versions.newer))
                for image in (versions.previous, webhook.image):
                    roll(webhook, image)
                    webhook.kubectl("rollout", "status", DEPLOYMENT, "--timeout=300s")
                    until(lambda image=image: len(ready_with(webhook, image)) == 2)  # type: ignore[misc]
        until(lambda: all(process.ended() for process in old))
        assert {process.ended()["exitCode"] for process in old} == {0}
    measured = versions.judged(creations, COMPATIBLE)
    figure(f"rolled back and upgraded, {SCALE.restarts} times", measured)
    # A replica of the previous version that drains is called once more over a kept connection.
    until(lambda: patch_fabrics(webhook.cluster, NEWER["spec"]["fabrics"]).code == 200)
    wait_until_in_use(webhook, compiled(NEWER).config_hash)
