from __future__ import annotations

import json
import re
import sys
import unicodedata
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path as File
from typing import Any

import pytest

from tests import waiting
from tests.builders import V100, fabrics
from tests.server_state import configured, prepared
from tests.unit.kube.cluster import Cluster
from tests.unit.serve.client import Lines
from tests.unit.serve.sources.test_configuration_object import Server, written
from tests.waiting import until
from webhook import __version__
from webhook.config.findings import INVALID_VALUE, Truncation
from webhook.config.load import FabricsText, LoadedConfiguration
from webhook.config.replica_reports import ReplicaReport
from webhook.errors import ClusterError
from webhook.kube.watched_resources import CONFIGURATIONS
from webhook.model.fabric import CompiledConfiguration
from webhook.model.facts import Facts
from webhook.model.finding import Finding, Location
from webhook.model.inventory import FabricInventory, build_inventory
from webhook.model.node_availability import AVAILABLE, CORDON, Availability
from webhook.model.nodes import Node
from webhook.model.pod.tolerations import Taint
from webhook.serve.metrics import Metrics
from webhook.serve.options import ServeOptions
from webhook.serve.sources.configuration_object import ObservedObject
from webhook.serve.sources.source import Source
from webhook.serve.state import PreparedConfiguration, State
from webhook.serve.status import content, status_writer
from webhook.serve.status.content import Condition, NodeSummary, status_update
from webhook.text.escape import visible

IN_POD = {"POD_NAME": "rdma-webhook-0", "POD_NAMESPACE": "rdma-webhook"}


def loaded(
    used: CompiledConfiguration, *findings: Finding, truncation: Truncation | None = None
) -> LoadedConfiguration:
    """Make a configuration as it was read."""
    return LoadedConfiguration(used, findings, FabricsText(""), truncation or Truncation())


def conditions(
    observed: ObservedObject, used: PreparedConfiguration | None
) -> dict[str, Condition]:
    """Return the conditions of the status by their types."""
    update = status_update(observed, used, NodeSummary(), {})
    assert update is not None
    return {condition.type: condition for condition in update.conditions}


def test_a_configuration_in_use() -> None:
    """It is valid and active; kubectl shows the names of its fabrics."""
    used = fabrics()
    update = status_update(ObservedObject(7, loaded(used), ""), prepared(used), NodeSummary(), {})
    assert update is not None
    assert (update.generation, update.fields["fabricNames"]) == (7, "v100-ib, h100-roce")
    ready, valid, active = update.conditions
    assert ready == Condition("Ready", True, "Ready", "Every replica uses this configuration.")
    assert valid == Condition("Valid", True, "Accepted", "There are no findings.")
    message = "The webhook uses this configuration (config 0123456789ab)."
    assert active == Condition("Active", True, "InUse", message)


def test_it_is_not_ready_while_nobody_calls_the_webhook() -> None:
    """The replicas agree on a configuration that decides on no pod."""
    used = fabrics()
    observed = ObservedObject(7, loaded(used), "")

    def ready(holds: bool | None) -> Condition:
        called = Condition("Called", holds, "NoWebhookConfiguration", "apply the manifests")
        update = status_update(observed, prepared(used), NodeSummary(), {}, called)
        assert update is not None
        assert update.conditions[-1] == called
        return update.conditions[0]

    assert ready(holds=False) == Condition(
        "Ready", False, "NoWebhookConfiguration", "apply the manifests"
    )
    assert [ready(holds=True).holds, ready(holds=None).holds] == [True, True]


def test_warnings_are_in_the_message() -> None:
    """Each has a line, with its path; the surplus is counted."""
    findings = (
        INVALID_VALUE.finding("warning", "odd", location=Location(path="spec.fabrics[0]")),
        INVALID_VALUE.finding("warning", "old"),
    )
    observed = ObservedObject(
        1, loaded(fabrics(), *findings, truncation=Truncation(warnings=2)), ""
    )
    valid = conditions(observed, None)["Valid"]
    assert valid.holds
    assert valid.message == "spec.fabrics[0]: odd\nold\nand 2 more warnings"


def test_a_configuration_that_cannot_be_used() -> None:
    """The message has the reasons; the last valid configuration, if any, stays in use."""
    observed = ObservedObject(8, None, "wrong")
    assert conditions(observed, None) == {
        "Ready": Condition("Ready", False, "NotUsable", "wrong"),
        "Valid": Condition("Valid", False, "NotUsable", "wrong"),
        "Active": Condition(
            "Active",
            False,
            "NothingInUse",
            "No fabrics are in use, so failurePolicy applies to pods that opted in.",
        ),
    }
    active = conditions(observed, prepared(fabrics()))["Active"]
    message = "The last good configuration stays in use (config 0123456789ab)."
    assert active == Condition("Active", False, "LastGoodInUse", message)
    update = status_update(observed, prepared(fabrics()), NodeSummary(), {})
    assert update is not None
    assert update.fields["fabricNames"] == "v100-ib, h100-roce"
    update = status_update(observed, None, NodeSummary(), {})
    assert update is not None
    assert update.fields["fabricNames"] == ""


def test_it_is_ready_once_every_replica_uses_it() -> None:
    """A replica that uses another generation is named; the hash also depends on its version."""
    used = fabrics()
    observed = ObservedObject(7, loaded(used), "")

    def ready(**generations: int) -> Condition:
        replicas = {
            name: ReplicaReport(f"hash-of-{name}", generation, "1.0")
            for name, generation in generations.items()
        }
        update = status_update(observed, prepared(used), NodeSummary(), replicas)
        assert update is not None
        return update.conditions[0]

    assert ready(first=7, second=7).holds
    assert ready(first=7, second=6).message == (
        "1 of 2 replicas does not use generation 7 yet: second (generation 6)."
    )
    behind = ready(first=7, second=6, third=0)
    message = (
        "2 of 3 replicas do not use generation 7 yet: second (generation 6), third (generation 0)."
    )
    assert behind == Condition("Ready", False, "ReplicasDiffer", message)


def test_a_configuration_that_will_take_effect() -> None:
    """For three seconds, the configuration before it decides."""
    before = fabrics()
    after = replace(before, config_hash="ba9876543210")
    active = conditions(ObservedObject(2, loaded(after), ""), prepared(before))["Active"]
    assert (active.holds, active.reason) == (False, "ComesIntoUse")
    assert active.message == (
        "This configuration takes effect in a few seconds; until then the previous one is in use "
        "(config 0123456789ab)."
    )


def test_a_long_message_is_cut() -> None:
    """People read its beginning."""
    message = conditions(ObservedObject(1, None, "x" * 4097), None)["Valid"].message
    assert (len(message), message[-1]) == (4096, "…")
    longest = "x" * 4096
    assert conditions(ObservedObject(1, None, longest), None)["Valid"].message == longest


def test_the_status_has_only_visible_characters() -> None:
    """The policy rdma-webhook-guard-status would refuse others, and so the whole status."""
    message = conditions(ObservedObject(1, None, "a\u202eb\nc\x9b"), None)["Valid"].message
    assert message == "a\\u202eb\nc\\x9b"
    known_nodes = {
        "n\x9b": node(Availability((CORDON,)), v100=8, rdma=2),
        "n\u202e": node(Availability((Taint("dedicated"),)), v100=8, rdma=2),
    }
    row = NodeSummary().of(prepared(fabrics(), known_nodes))["fabrics"][0]
    assert row["problems"] == ["1 node is cordoned (n\\x9b)"]
    assert row["notes"][0].endswith("run there (n\\u202e)")


def test_a_problem_with_calls_is_visible() -> None:
    """It quotes what somebody else has written into a webhook configuration."""
    called = Condition("Called", False, "OtherService", "a\u202eb\nc\ufe0f")
    observed = ObservedObject(7, loaded(fabrics()), "")
    update = status_update(observed, prepared(fabrics()), NodeSummary(), {}, called)
    assert update is not None
    messages = {condition.type: condition.message for condition in update.conditions}
    assert messages["Called"] == messages["Ready"] == "a\\u202eb\nc\\ufe0f"


def hidden_characters(policy: str, expression: str) -> str:
    """Return the characters that a policy refuses, as they are in its regular expression."""
    text = File(f"manifests/base/{policy}.yaml").read_text(encoding="utf-8")
    joined = text.partition(expression)[2].partition("]")[0].replace("\\\\", "\\")
    return re.sub(r"' \+\s+'", "", joined)


def test_the_policy_refuses_no_character_that_the_webhook_writes() -> None:
    """Each hidden character of the policy, except a line break, is escaped by the webhook."""
    hidden = hidden_characters("guard-status", "'[")
    assert "\\p{Cf}" in hidden
    written = re.sub(r"\\x\{(\w+)\}", lambda match: f"\\U{match[1]:>08}", hidden)
    written = written.replace("\\p{Cf}", "")
    pattern = re.compile(f"[{written}]")
    for character in map(chr, range(sys.maxunicode + 1)):
        if pattern.match(character) or unicodedata.category(character) == "Cf":
            assert visible(character) != character, hex(ord(character))
    assert not pattern.match("\n")
    lines = "\\x{2028}"
    events = hidden_characters("guard-events", "'^[^")
    assert events == f"\\p{{C}}{lines}{hidden.partition(lines)[2]}"


def test_the_lists_of_the_status_are_as_long_as_the_policy_allows(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It would refuse a longer one, and so the whole status."""
    known_nodes = {"a": node(Availability((CORDON,))), "b": node(Availability((Taint("t"),)))}
    configuration = prepared(fabrics(), known_nodes)
    guard = File("manifests/base/guard-status.yaml").read_text(encoding="utf-8")
    assert f"variables.fabrics.size() <= {content._MAX_ITEMS} &&" in guard
    assert f"l.size() <= {content._MAX_ITEMS})" in guard
    for limit in (1, 0):
        monkeypatch.setattr(content, "_MAX_ITEMS", limit)
        rows = NodeSummary().of(configuration)["fabrics"]
        assert len(rows) == limit
    row = content._row(build_inventory(known_nodes, configuration.compiled).fabrics[0], known_nodes)
    assert (row["problems"], row["notes"], row["resources"]) == ([], [], [])


def node(availability: Availability = AVAILABLE, **resources: int) -> Node:
    """Make a node of the fabric v100-ib."""
    offered = {f"nvidia.com/{name}": amount for name, amount in resources.items() if name != "rdma"}
    if "rdma" in resources:
        offered["rdma/v100"] = resources["rdma"]
    labels = {"nvidia.com/gpu.product": "Tesla-V100-SXM2-32GB"}
    return Node(labels=labels, resources=offered, availability=availability)


def test_resources_of_the_nodes_are_in_the_status() -> None:
    """They are summed for each fabric, with the problems; there are none before nodes are known."""
    used = fabrics()
    known_nodes = {"n1": node(v100=8, rdma=2), "n2": node(v100=4), "n3": node(v100=1)}
    configuration = prepared(used, known_nodes)
    update = status_update(ObservedObject(1, loaded(used), ""), configuration, NodeSummary(), {})
    assert update is not None
    assert update.fields["nodes"] == 3
    first, second = update.fields["fabrics"]
    assert {key: first[key] for key in ("name", "nodes", "gpus", "resources")} == {
        "name": "v100-ib",
        "nodes": 3,
        "gpus": 13,
        "resources": [{"name": "rdma/v100", "allocatable": 2, "nodes": 1}],
    }
    assert any("n2" in problem for problem in first["problems"])
    assert (second["name"], second["nodes"], second["gpus"]) == ("h100-roce", 0, 0)
    without = status_update(ObservedObject(1, loaded(used), ""), prepared(used), NodeSummary(), {})
    assert without is not None
    assert without.fields.keys() == {"fabricNames"}


def test_amounts_fit_into_the_kind() -> None:
    """Its fields are int64: a kubelet that reports the largest amount must not end all writes."""
    largest = 2**63 - 1
    amounts = [(largest, largest, largest), (largest, 1, largest), (largest - 1, 1, largest)]
    for first, second, expected in amounts:
        known_nodes = {"n1": node(v100=first, rdma=first), "n2": node(v100=second, rdma=second)}
        row = NodeSummary().of(prepared(fabrics(), known_nodes))["fabrics"][0]
        assert (row["gpus"], row["resources"][0]["allocatable"]) == (expected, expected)


def test_nodes_that_take_no_pods_are_apart_in_the_status() -> None:
    """They are counted and named, but add nothing; a pool's own taint is a note, no problem."""
    used = fabrics()
    known_nodes = {
        "n1": node(Availability((Taint("dedicated"),)), v100=8, rdma=2),
        "n2": node(Availability((CORDON,)), v100=8, rdma=2),
    }
    fields = NodeSummary().of(prepared(used, known_nodes))
    assert (fields["nodes"], fields["problems"]) == (1, 2)  # the other fabric has no nodes
    row = fields["fabrics"][0]
    assert row == {
        "name": "v100-ib",
        "nodes": 1,
        "unavailableNodes": 1,
        "gpus": 8,
        "resources": [{"name": "rdma/v100", "allocatable": 2, "nodes": 1}],
        "problems": ["1 node is cordoned (n2)"],
        "notes": ["1 node has the taint dedicated, so only pods that tolerate it run there (n1)"],
    }


def test_equal_nodes_and_fabrics_are_not_summed_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """The status is computed every ten seconds; only changed nodes or fabrics are counted."""
    counted: list[tuple[object, object]] = []

    def noted(nodes: Mapping[str, Node], used: CompiledConfiguration) -> FabricInventory:
        counted.append((nodes, used))
        return build_inventory(nodes, used)

    monkeypatch.setattr(content, "build_inventory", noted)
    first, second = fabrics(), fabrics()
    small, large = {"n1": node(v100=8)}, {"n1": node(v100=8), "n2": node(v100=4)}
    node_summary = NodeSummary()

    def nodes(used: CompiledConfiguration, by_name: Mapping[str, Node]) -> int:
        fields = node_summary.of(prepared(used, by_name))
        count: int = fields["nodes"]
        return count

    assert [nodes(first, small), nodes(first, small), nodes(first, large), nodes(first, large)] == [
        1,
        1,
        2,
        2,
    ]
    assert [nodes(second, large), nodes(second, large), nodes(first, large)] == [2, 2, 2]
    expected = [(small, first), (large, first), (large, second), (large, first)]
    assert [(id(by_name), id(used)) for by_name, used in counted] == [
        (id(by_name), id(used)) for by_name, used in expected
    ]


def test_without_an_object_there_is_no_status() -> None:
    """It would have no place."""
    assert status_update(None, prepared(fabrics()), NodeSummary(), {}) is None


def test_the_last_object_of_the_watch_is_known() -> None:
    """It has its generation, whether valid or not; a deletion leaves no object."""
    cluster = Cluster()
    cluster.put(CONFIGURATIONS.path, written(generation=3))
    server = Server(cluster)
    observed: list[Any] = []

    def look(change: Any = None) -> bool:
        observed.append(server.source.observed_object)
        if change is not None:
            change()
        return True

    server.run(
        lambda: (
            CONFIGURATIONS.path in cluster.streams
            and server.state.snapshot.current_configuration is not None
        ),
        lambda: look(lambda: cluster.put(CONFIGURATIONS.path, written("no", generation=4))),
        lambda: server.source.observed_object != observed[0],
        lambda: look(lambda: cluster.delete(CONFIGURATIONS.path, written())),
        lambda: server.source.observed_object is None,
    )
    assert [
        (configuration.generation, configuration.loaded_configuration is not None)
        for configuration in observed
    ] == [
        (3, True),
        (4, False),
    ]
    assert "rateGbps" in observed[1].problem


@pytest.mark.parametrize("lacking", ["POD_NAME", "POD_NAMESPACE"])
def test_only_a_pod_writes_the_status(lacking: str) -> None:
    """A Lease needs a holder's name, which does not exist outside a cluster."""
    server, options = Server(Cluster()), ServeOptions()
    state, metrics, log = State(), Metrics(), Lines().log

    def sources(configuration: object, environment: Mapping[str, str]) -> tuple[Source, ...]:
        return status_writer(
            options,
            configuration,
            state,
            metrics,
            log,
            chain=lambda: b"",
            environment=environment,
        )

    without = {key: value for key, value in IN_POD.items() if key != lacking}
    assert sources(server.source, without) == ()
    assert sources(object(), IN_POD) == ()
    assert not any(source.poll() for source in sources(server.source, IN_POD))


class ApiServer:
    """An API server that records the writes and the Leases."""

    def __init__(self) -> None:
        self.connected: list[File | None] = []
        self.leases: list[tuple[str, str, str]] = []
        self.released = 0
        self.held, self.missing = True, False
        self.written: list[dict[str, Any]] = []
        self.merged: list[dict[str, Any]] = []
        self.reasons: list[str] = []
        self.problem: str = ""

    def client(self, kubeconfig: File | None, _overrides: object) -> ApiServer:
        """Connect; fail if there is a problem."""
        self.connected.append(kubeconfig)
        if self.problem:
            raise ClusterError(self.problem)
        return self

    def lease(self, client: ApiServer, *named: str) -> ApiServer:
        """Return the Lease of these names."""
        assert client is self
        space, name, holder = named
        self.leases.append((space, name, holder))
        return self

    def attempt(self) -> float:
        """Hold the Lease."""
        return 5.0

    def release(self) -> None:
        """Count."""
        self.released += 1

    def read(self, _path: str) -> None:
        """Have no object."""

    def create(self, _path: str, body: dict[str, Any]) -> bool:
        """Record an Event."""
        self.reasons.append(body["reason"])
        return True

    def apply(self, _path: str, body: dict[str, Any]) -> bool:
        """Record a write."""
        self.written.append(body["status"])
        return True

    def merge(self, _path: str, body: dict[str, Any]) -> bool:
        """Record a write of the replica's own part."""
        self.merged.append(body["status"])
        return True


class Writing:
    """A writer in its thread, with an API server in memory."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.api, self.lines, self.metrics = ApiServer(), Lines(), Metrics()
        monkeypatch.setattr("webhook.serve.status.writer.WRITE_INTERVAL", 0.01)
        monkeypatch.setattr("webhook.serve.status.writer.TICK", 0.01)
        monkeypatch.setattr("webhook.serve.sources.periodic._END", waiting.PATIENCE)
        monkeypatch.setattr("webhook.kube.client.Client", self.api.client)
        monkeypatch.setattr("webhook.kube.lease.Lease", self.api.lease)
        used = fabrics()
        facts = Facts(nodes={"n1": node(v100=8, rdma=2)})
        server, state = Server(Cluster()), configured(used, facts)
        server.source.observed_object = ObservedObject(7, loaded(used), "")
        server.source.used_generation = 7
        self.source = server.source
        options = ServeOptions(kubeconfig=File("admin.conf"))
        self.sources = status_writer(
            options,
            server.source,
            state,
            self.metrics,
            self.lines.log,
            chain=lambda: b"",
            environment=IN_POD,
        )

    def run(self, *conditions: Callable[[], object]) -> None:
        """Run until each of the conditions has been true, in this order."""
        for source in self.sources:
            source.start()
        try:
            for condition in conditions:
                until(condition)
        finally:
            for source in self.sources:
                source.stop()

    def successful(self) -> float | None:
        """Return the metric of the last write."""
        name = "rdma_webhook_status_last_write_successful"
        return self.metrics.registry.get_sample_value(name)


@pytest.fixture
def writing(monkeypatch: pytest.MonkeyPatch) -> Writing:
    """Return a writer that has not started."""
    return Writing(monkeypatch)


def test_the_replica_writes_what_it_observes(writing: Writing) -> None:
    """It writes in its own name, while it holds the Lease."""
    api = writing.api
    writing.run(lambda: api.written)
    assert (api.released, writing.lines.read()) == (1, [])
    assert {*api.connected} == {File("admin.conf")}
    assert api.leases == [("rdma-webhook", "rdma-webhook", "rdma-webhook-0")]
    (status,) = api.written
    assert (status["observedGeneration"], status["nodes"]) == (7, 1)
    assert status["fabricNames"] == "v100-ib, h100-roce"
    states = {condition["type"]: condition["status"] for condition in status["conditions"]}
    assert states == {"Ready": "True", "Valid": "True", "Active": "True"}


def test_the_replica_writes_its_own_part(writing: Writing) -> None:
    """It keeps the spec in use, and says what it uses until it stops."""
    writing.run(lambda: writing.api.written)
    kept, own, left = writing.api.merged
    assert [(item["generation"], item["config"]) for item in kept["kept"]] == [(7, "0123456789ab")]
    report = {"config": "0123456789ab", "generation": 7, "version": __version__}
    assert own["replicas"]["rdma-webhook-0"].items() >= report.items()
    assert left == {"replicas": {"rdma-webhook-0": None}}


def test_a_problem_is_logged_once(writing: Writing) -> None:
    """The metric is 0 until a write succeeds."""
    api = writing.api
    api.problem = "no token"

    def mend() -> bool:
        api.problem = ""
        return True

    # The Lease and the check of calls also connect once, and again only after seconds.
    writing.run(lambda: len(api.connected) > 4, mend, lambda: writing.successful() == 1)
    (line,) = writing.lines.read()
    assert (line["level"], line["msg"]) == ("warning", "could not write the status")
    assert line["problem"] == "no token"


@pytest.fixture
def quick(writing: Writing, monkeypatch: pytest.MonkeyPatch) -> Writing:
    """Return a writer whose replica checks all the time whether it is called."""
    monkeypatch.setattr("webhook.serve.status.call_check.CONFIRM_SECONDS", 0.01)
    monkeypatch.setattr("webhook.serve.status.events.SECONDS", 0.01)
    return writing


def test_the_status_shows_that_nobody_calls(quick: Writing) -> None:
    """The API server has no webhook configuration; an Event reports it, too."""
    api = quick.api

    def called() -> list[str]:
        conditions = api.written[-1]["conditions"] if api.written else ()
        return [item["reason"] for item in conditions if item["type"] == "Called"]

    quick.run(
        lambda: called() == ["NoWebhookConfiguration"],
        lambda: "NoWebhookConfiguration" in api.reasons,
    )


def test_a_missing_lease_is_an_event_even_without_an_object(quick: Writing) -> None:
    """The missing object is no Event, since the watch has not looked for it yet."""
    quick.source.observed_object = None
    quick.api.held, quick.api.missing = False, True
    quick.run(lambda: {"NoLease", "NoWebhookConfiguration"} <= {*quick.api.reasons})
    assert "NothingInUse" not in quick.api.reasons


@pytest.mark.parametrize("word", ["", "\N{EURO SIGN}" * 9, "<" * 9], ids=["short", "€", "<"])
def test_a_status_of_thousands_of_fabrics_fits(word: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The policy on the status allows 256 KiB of JSON, and rejects all of a larger one."""
    used = fabrics(*(replace(V100, name=f"f{number}{word}") for number in range(3000)))
    status = NodeSummary().of(prepared(used, {"n1": node(v100=8, rdma=2)}))
    names = [row["name"] for row in status["fabrics"]]
    assert 100 < len(names) < 3000
    assert names == [*used.fabrics][: len(names)]
    escaped = json.dumps(status["fabrics"], ensure_ascii=False).replace("<", "\\u003c").encode()
    separators = 2 * len(names)
    assert content._MAX_ROWS_BYTES - 1024 < len(escaped) - separators <= content._MAX_ROWS_BYTES
    monkeypatch.setattr(content, "_MAX_ROWS_BYTES", 1 << 30)
    monkeypatch.setattr(content, "_MAX_ITEMS", 3000)
    whole = NodeSummary().of(prepared(used, {"n1": node(v100=8, rdma=2)}))
    assert len(whole["fabrics"]) == 3000
    assert {**whole, "fabrics": []} == {**status, "fabrics": []}


def test_the_names_of_many_fabrics_are_shortened() -> None:
    """They are a column of `kubectl get fabrics`."""
    used = fabrics(*(replace(V100, name=f"f{number}") for number in range(101)))
    update = status_update(ObservedObject(1, loaded(used), ""), prepared(used), NodeSummary(), {})
    assert update is not None
    assert update.fields["fabricNames"].endswith(", f97, f98 and 2 more")
