from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.builders import V100, fabric, fabrics, pod
from tests.unit.app.client import Lines
from tests.unit.app.sources.stepping import PAUSE, run_steps
from tests.unit.kube.cluster import Cluster, refused
from webhook.app.observe.metrics import Metrics
from webhook.app.sources.claim_templates import ClaimTemplates
from webhook.app.state import State
from webhook.decision.claim_facts import ClaimFacts
from webhook.errors import ClusterError
from webhook.fabric.records import DeviceClaim
from webhook.kube.feed import Feed
from webhook.kube.kinds import CLAIM_TEMPLATES

PATH = "/apis/resource.k8s.io/v1/resourceclaimtemplates"
BY_CLAIM = fabrics(fabric("h100", mode="dra", claims=(DeviceClaim(template="nics"),)))


def template(name: str = "nics", space: str = "lab", **classes: str) -> dict[str, Any]:
    """Make a template, with a device class for each request."""
    requests = [
        {"name": request, "exactly": {"deviceClassName": one}} for request, one in classes.items()
    ]
    spec = {"spec": {"devices": {"requests": requests}}}
    return {"metadata": {"name": name, "namespace": space}, "spec": spec}


class Server:
    """A state that follows the templates of a cluster in memory."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.lines = Lines()
        self.metrics = Metrics()
        self.state = State()
        feed = Feed(lambda: cluster, lambda: iter([PAUSE] * 10_000), kinds=(CLAIM_TEMPLATES,))
        self.source = ClaimTemplates(feed, self.state, self.metrics)

    def run(self, *steps: Callable[[], Any]) -> None:
        """Run until each of the conditions has become true, in this order."""
        run_steps(self.source, map(self._polling, steps))

    def _polling(self, step: Callable[[], Any]) -> Callable[[], Any]:
        """Return the step, each time with what the server does every second before it."""

        def polled() -> Any:
            self.poll()
            return step()

        return polled

    def poll(self) -> None:
        """Do what the server does every second."""
        if self.source.poll():
            self.source.apply(self.metrics, self.lines.log)

    def knows(self, space: str = "lab") -> ClaimFacts:
        """Return what a decision would know about the templates of a namespace."""
        context = self.state.context_for(space, pod())
        assert context is not None
        return context.namespace.claims

    def told(self) -> list[str]:
        """Return the logged messages."""
        return [line["msg"] for line in self.lines.read()]


def test_where_the_kind_is() -> None:
    """In the group that RBAC names; a template that requests nothing is there, too."""
    assert CLAIM_TEMPLATES.path == PATH
    assert CLAIM_TEMPLATES.project(template(nic="roce")) == ({"nic": ("roce",)},)
    assert CLAIM_TEMPLATES.project(template())


def test_nothing_is_read_where_no_fabric_has_claims() -> None:
    """Neither without a configuration nor with other modes; and not before the server serves."""
    server = Server(Cluster())
    server.poll()
    server.state.configure(server.state.prepare(fabrics(V100)))
    polls = iter(range(50))
    server.run(lambda: next(polls, None) is None)
    assert server.cluster.asked == []
    assert server.knows() == ClaimFacts()
    server.state.configure(server.state.prepare(BY_CLAIM))
    idle = Server(Cluster())
    idle.state.configure(idle.state.prepare(BY_CLAIM))
    idle.poll()
    assert idle.cluster.asked == []


def test_templates_are_read_as_soon_as_a_fabric_has_claims() -> None:
    """What is not listed does not exist from then on; each change is in use."""
    cluster = Cluster()
    cluster.put(PATH, template(nic="roce.lab"), template("gone"), template("other", "else"))
    server = Server(cluster)
    server.state.configure(server.state.prepare(fabrics(V100)))

    def configured() -> bool:
        server.state.configure(server.state.prepare(BY_CLAIM))
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
        lambda: server.knows().complete and bool(cluster.streams),
        changed,
        lambda: server.knows().templates == {"nics": {"nic": ("rdma.lab",)}},
        deleted,
        lambda: not server.knows().templates,
    )
    assert server.knows("else").templates == {"other": {}}
    assert server.knows("empty") == ClaimFacts(complete=True)
    assert server.told() == []
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
    server.state.configure(server.state.prepare(BY_CLAIM))
    server.run(
        lambda: "claim templates not current" in server.told(), lambda: len(cluster.asked) > 5
    )
    assert server.knows() == ClaimFacts()


def test_a_kind_that_comes_is_read() -> None:
    """As after an upgrade of the cluster."""
    cluster = Cluster()
    cluster.failures += [refused(404)] * 3
    server = Server(cluster)
    server.state.configure(server.state.prepare(BY_CLAIM))
    server.run(lambda: server.knows().complete)


def test_a_problem_is_told_once() -> None:
    """The last state stays in use; a defect of the webhook counts as such."""
    cluster = Cluster()
    cluster.put(PATH, template(nic="roce.lab"))
    server = Server(cluster)
    server.state.configure(server.state.prepare(BY_CLAIM))

    def broken() -> bool:
        cluster.failures += [ClusterError("refused")] * 20
        cluster.watch(PATH).send(ClusterError("reset"))
        return True

    server.run(
        lambda: server.knows().complete and bool(cluster.streams),
        broken,
        lambda: "claim templates not current" in server.told(),
        lambda: "claim templates current" in server.told(),
    )
    assert server.knows().templates == {"nics": {"nic": ("roce.lab",)}}
    defects = Cluster()
    defects.failures += [ValueError("x")] * 20
    other = Server(defects)
    other.state.configure(other.state.prepare(BY_CLAIM))
    other.run(lambda: "internal error" in other.told())
    assert other.metrics.internal_errors._value.get() == 1
