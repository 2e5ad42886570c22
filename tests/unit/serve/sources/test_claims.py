from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from tests import waiting
from tests.builders import V100, fabric, fabrics, pod
from tests.server_state import prepared, use
from tests.unit.kube.cluster import Cluster, refused
from tests.unit.serve.client import Lines
from tests.unit.serve.sources.stepping import PAUSE, run_steps
from webhook.errors import ClusterError
from webhook.kube.informers import Informers
from webhook.kube.watched_resources import CLAIM_TEMPLATES, CLAIMS
from webhook.model.claims import ClaimFacts
from webhook.model.fabric import ClaimTemplateReference, CompiledConfiguration
from webhook.serve.metrics import Metrics
from webhook.serve.sources.claims import ClusterClaims, _ClaimWatch
from webhook.serve.state import ConfigurationLearned, State
from webhook.serve.waiting_requests import WaitingRequests, claim_key

PATH = "/apis/resource.k8s.io/v1/resourceclaimtemplates"
CLAIMED = "/apis/resource.k8s.io/v1/resourceclaims"
BY_CLAIM = fabrics(
    fabric("h100", mode="dra", claim_templates=(ClaimTemplateReference(template="nics"),))
)


def template(name: str = "nics", space: str = "lab", **classes: str) -> dict[str, Any]:
    """Make a template, with a device class for each request."""
    requests = [
        {"name": request, "exactly": {"deviceClassName": device_class}}
        for request, device_class in classes.items()
    ]
    spec = {"spec": {"devices": {"requests": requests}}}
    return {"metadata": {"name": name, "namespace": space}, "spec": spec}


def claim(name: str, space: str = "lab", **classes: str) -> dict[str, Any]:
    """Make a ResourceClaim."""
    whole_template = template(name, space, **classes)
    return {**whole_template, "spec": whole_template["spec"]["spec"]}


def made_for(kind: str, item: dict[str, Any]) -> dict[str, Any]:
    """Return a claim as Kubernetes creates it for a pod, or for a group of pods."""
    owner = {"kind": kind, "name": "x", "uid": "u", "controller": True}
    annotations = {"resource.kubernetes.io/pod-claim-name": "nic"} if kind == "PodGroup" else {}
    metadata = {**item["metadata"], "ownerReferences": [owner], "annotations": annotations}
    return {**item, "metadata": metadata}


class Server:
    """A state that follows the claims of a cluster in memory."""

    def __init__(self, cluster: Cluster) -> None:
        self.now = 0.0
        self.created: list[Informers] = []
        self.cluster = cluster
        self.lines = Lines()
        self.metrics = Metrics()
        self.state = State()
        self.source = ClusterClaims(self._informers, self.state, self.metrics, lambda: self.now)

    def _informers(self) -> Informers:
        self.created.append(
            Informers(
                lambda: self.cluster,
                lambda: iter([PAUSE] * 10_000),
                kinds=(CLAIM_TEMPLATES, CLAIMS),
            )
        )
        return self.created[-1]

    def use(self, configuration: CompiledConfiguration) -> None:
        """Put a configuration to use."""
        use(self.state, configuration)

    def run(self, *steps: Callable[[], Any]) -> None:
        """Run until each of the conditions has become true, in this order."""
        run_steps(self.source, map(self._polling, steps))

    def _polling(self, step: Callable[[], Any]) -> Callable[[], Any]:
        """Return the step, preceded by what the server does every second."""

        def polled() -> Any:
            self.poll()
            return step()

        return polled

    def poll(self) -> None:
        """Do what the server does every second."""
        if self.source.poll():
            self.source.apply(self.metrics, self.lines.log)

    def knows(self, space: str = "lab") -> ClaimFacts:
        """Return the claims of a namespace that a decision would see."""
        decision_input = self.state.decision_input_for(space, pod())
        assert decision_input is not None
        return decision_input.namespace.claim_facts

    def logged(self) -> list[str]:
        """Return the logged messages."""
        return [line["msg"] for line in self.lines.read()]


def test_where_the_kind_is() -> None:
    """It is in the group that RBAC names; a template without requests is kept, too."""
    assert CLAIM_TEMPLATES.path == PATH
    assert CLAIM_TEMPLATES.project(template(nic="roce")) == ({"nic": ("roce",)},)
    assert CLAIM_TEMPLATES.project(template())
    assert CLAIMS.path == CLAIMED
    assert CLAIMS.project(claim("mine", nic="roce")) == ({"nic": ("roce",)},)


def test_nothing_is_read_where_no_fabric_has_claims() -> None:
    """This holds without a configuration, with other modes, and before the server serves."""
    server = Server(Cluster())
    server.poll()
    server.use(fabrics(V100))
    polls = iter(range(50))
    server.run(lambda: next(polls, None) is None)
    assert server.cluster.asked == []
    assert server.knows() == ClaimFacts()
    server.use(BY_CLAIM)
    idle = Server(Cluster())
    idle.use(BY_CLAIM)
    idle.poll()
    assert idle.cluster.asked == []


def test_templates_are_read_as_soon_as_a_fabric_has_claims() -> None:
    """Objects that are not listed do not exist from then on; each change is in use."""
    cluster = Cluster()
    cluster.put(PATH, template(nic="roce.lab"), template("gone"), template("other", "else"))
    server = Server(cluster)
    server.use(fabrics(V100))

    def configured() -> bool:
        server.use(BY_CLAIM)
        return True

    def deleted() -> bool:
        cluster.delete(PATH, template())
        return True

    def changed() -> bool:
        cluster.delete(PATH, template("gone"))
        cluster.put(PATH, template(nic="rdma.lab"))
        return True

    server.run(
        configured,
        lambda: server.knows().has_all_templates and PATH in cluster.streams,
        changed,
        lambda: server.knows().templates == {"nics": {"nic": ("rdma.lab",)}},
        deleted,
        lambda: not server.knows().templates,
    )
    assert server.knows("else").templates == {"other": {}}
    assert server.knows("empty") == ClaimFacts(has_all_templates=True)
    assert server.logged() == []
    objects = server.metrics.registry.get_sample_value(
        "rdma_webhook_facts_objects", {"resource": "resourceclaimtemplates"}
    )
    assert objects == 1.0


@pytest.mark.parametrize("code", [404, 403])
def test_a_cluster_without_the_kind_leaves_them_unknown(code: int) -> None:
    """Kubernetes before 1.34, or a role that does not permit it: no verdict is based on that."""
    cluster = Cluster()
    cluster.failures += [refused(code)] * 10_000
    cluster.put(PATH, template(nic="roce.lab"))
    server = Server(cluster)
    server.use(BY_CLAIM)
    server.run(lambda: "claims not current" in server.logged(), lambda: len(cluster.asked) > 5)
    assert server.knows() == ClaimFacts()


def test_a_kind_that_comes_is_read() -> None:
    """An upgrade of the cluster may add it."""
    cluster = Cluster()
    cluster.failures += [refused(404)] * 3
    server = Server(cluster)
    server.use(BY_CLAIM)
    server.run(lambda: server.knows().has_all_templates)


def test_a_problem_is_logged_once() -> None:
    """The last state stays in use; a defect of the webhook is counted as a defect."""
    cluster = Cluster()
    cluster.put(PATH, template(nic="roce.lab"))
    server = Server(cluster)
    server.use(BY_CLAIM)

    def broken() -> bool:
        cluster.failures += [ClusterError("refused")] * 10_000
        cluster.watch(PATH).send(ClusterError("reset"))
        return True

    def repaired() -> bool:
        cluster.failures.clear()
        return True

    server.run(
        lambda: server.knows().has_all_templates and PATH in cluster.streams,
        broken,
        lambda: "claims not current" in server.logged(),
        repaired,
        lambda: "claims current" in server.logged(),
    )
    assert server.knows().templates == {"nics": {"nic": ("roce.lab",)}}
    defects = Cluster()
    defects.failures += [ValueError("x")] * 10_000
    other = Server(defects)
    other.use(BY_CLAIM)
    other.run(lambda: "internal error" in other.logged())
    assert other.metrics.internal_errors._value.get() >= 1


def test_a_claim_is_known_as_long_as_it_exists() -> None:
    """So are the templates of its namespace; claims that were created for pods are not kept."""
    cluster = Cluster()
    cluster.put(PATH, template(nic="roce.lab"))
    cluster.put(CLAIMED, claim("mine", gpu="h100.lab"), claim("theirs", "else", nic="roce.lab"))
    cluster.put(CLAIMED, made_for("Pod", claim("train-nic-x7")))
    cluster.put(CLAIMED, made_for("PodGroup", claim("group-nic-x8")))
    server = Server(cluster)
    server.use(BY_CLAIM)

    def deleted() -> bool:
        cluster.delete(CLAIMED, claim("mine"))
        return True

    def create() -> bool:
        cluster.put(CLAIMED, made_for("Pod", claim("train-nic-x9")), claim("new"))
        return True

    server.run(
        lambda: (
            server.knows().claims and server.knows().has_all_templates and len(cluster.streams) == 2
        ),
        lambda: server.knows().claims == {"mine": {"gpu": ("h100.lab",)}},
        deleted,
        lambda: not server.knows().claims,
        create,
        lambda: server.knows().claims == {"new": {}},
    )
    assert server.knows().templates == {"nics": {"nic": ("roce.lab",)}}
    assert server.knows("else").claims == {"theirs": {"nic": ("roce.lab",)}}
    objects = server.metrics.registry.get_sample_value(
        "rdma_webhook_facts_objects", {"resource": "resourceclaims"}
    )
    assert objects == 2.0


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        (PATH, ClaimFacts(claims={"mine": {}})),
        (CLAIMED, ClaimFacts(templates={"nics": {}}, has_all_templates=True)),
    ],
    ids=["no templates", "no claims"],
)
def test_an_unreadable_kind_hides_no_other(path: str, expected: ClaimFacts) -> None:
    """The role of an older release permits templates alone."""
    cluster = Cluster()
    cluster.put(PATH, template())
    cluster.put(CLAIMED, claim("mine"))
    cluster.forbidden.add(path)
    server = Server(cluster)
    server.use(BY_CLAIM)
    server.run(lambda: server.knows() == expected, lambda: "claims not current" in server.logged())
    assert server.state.snapshot.claims is not None
    assert server.state.snapshot.claims.are_watched is (path == PATH)


def test_a_request_for_a_claim_continues_when_it_comes() -> None:
    """The claim is known before its pod's request is answered."""
    cluster = Cluster()
    server = Server(cluster)
    server.use(BY_CLAIM)
    server.state.waiting_requests = waiting = WaitingRequests(seconds=600)
    tasks: list[asyncio.Task[bool]] = []

    def asks() -> bool:
        tasks.append(asyncio.create_task(waiting.wait_for([claim_key("lab", "mine")], 0)))
        return True

    def comes() -> bool:
        cluster.put(CLAIMED, claim("mine"))
        return True

    server.run(
        lambda: (
            server.state.snapshot.claims
            and server.state.snapshot.claims.are_watched
            and cluster.streams
        ),
        asks,
        comes,
        lambda: tasks[0].done() and tasks[0].result(),
    )
    assert server.knows().claims == {"mine": {}}


def test_nothing_is_watched_once_no_fabric_has_claims() -> None:
    """The watch ends a minute later, since second calls may need the configuration before."""
    cluster = Cluster()
    cluster.put(PATH, template())
    server = Server(cluster)
    server.use(BY_CLAIM)

    def changed() -> bool:
        server.use(fabrics(V100))
        server.poll()
        server.now = 60.0
        return True

    def later() -> bool:
        assert server.knows().has_all_templates
        server.now = 60.5
        return True

    server.run(
        lambda: server.knows().has_all_templates and len(cluster.streams) == 2,
        changed,
        later,
        lambda: "claims no longer watched" in server.logged(),
    )
    assert server.knows() == ClaimFacts()
    assert all(reflector.join(waiting.PATIENCE) for reflector in server.created[0].reflectors)
    last_contact = server.metrics.registry.get_sample_value(
        "rdma_webhook_facts_objects", {"resource": "resourceclaims"}
    )
    assert last_contact is None


def test_a_stopped_watch_begins_anew() -> None:
    """Late events of the old watch do not count."""
    cluster = Cluster()
    cluster.put(PATH, template("old"))
    server = Server(cluster)
    server.use(BY_CLAIM)

    def let_go() -> bool:
        server.use(fabrics(V100))
        server.poll()
        server.now += 61.0
        server.poll()
        cluster.delete(PATH, template("old"))
        server.use(BY_CLAIM)
        return True

    server.run(
        lambda: server.knows().templates,
        let_go,
        lambda: server.knows() == ClaimFacts(has_all_templates=True),
    )
    first, second = server.created
    server.source.use_changes(_ClaimWatch(first))
    assert server.knows() == ClaimFacts(has_all_templates=True)
    assert second is not first


def test_a_configuration_that_is_about_to_be_used_counts() -> None:
    """Its claims are thus known when it is in use."""
    cluster = Cluster()
    server = Server(cluster)
    server.use(fabrics(V100))
    server.state.send(ConfigurationLearned(prepared(BY_CLAIM)))
    server.run(lambda: server.state.snapshot.claims is not None)
