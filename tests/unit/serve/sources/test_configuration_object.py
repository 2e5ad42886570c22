from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest
import yaml

from tests.builders import pod
from tests.server_state import learn
from tests.unit.kube.cluster import Cluster, refused
from tests.unit.serve.client import Lines
from tests.unit.serve.sources.stepping import PAUSE, run_steps
from webhook.config import EXAMPLE
from webhook.config.custom_resource import CONFIGURATION_TITLE
from webhook.config.load import parse_object
from webhook.errors import ClusterError
from webhook.kube.informers import Informers
from webhook.kube.watched_resources import CONFIGURATIONS
from webhook.model.facts import Facts
from webhook.model.nodes import FabricIndex, Node, build_fabric_index
from webhook.serve import state
from webhook.serve.metrics import Metrics
from webhook.serve.sources import configuration_object
from webhook.serve.sources.configuration_in_use import ConfigurationInUse
from webhook.serve.sources.configuration_object import (
    DELAY,
    NO_FABRICS,
    NO_KIND,
    NO_OBJECT,
    NOT_USABLE,
    SETTLE_SECONDS,
    ObjectConfiguration,
)
from webhook.serve.state import State

PATH = CONFIGURATIONS.path
SPEC = yaml.safe_load(EXAMPLE.read_text())["spec"]


def written(
    rate: Any = 100, *, generation: int = 1, fabrics: int = 2, managed: Any = (), **fields: Any
) -> Any:
    """Write the object as the API server does, with another rate of the first fabric."""
    first, *remaining = SPEC["fabrics"]
    listed = [{**first, "rateGbps": rate}, *remaining][:fabrics]
    return {
        "apiVersion": "rdma.lab/v1alpha1",
        "kind": "FabricConfiguration",
        "metadata": {
            "name": "default",
            "uid": "u",
            "generation": generation,
            "managedFields": [*managed],
        },
        "spec": {**SPEC, "fabrics": listed},
        **fields,
    }


class Server:
    """A state that follows the object of a cluster in memory; the clock is the test's."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.now = 1000.0
        self.lines = Lines()
        self.metrics = Metrics()
        self.state = State()
        self.in_use = ConfigurationInUse(self.state, self.metrics, self.lines.log)
        pauses = lambda: iter([PAUSE] * 100_000)  # noqa: E731
        informers = Informers(lambda: cluster, pauses, kinds=(CONFIGURATIONS,))
        self.source = ObjectConfiguration(informers, self.state, self.in_use, lambda: self.now)

    def run(self, *steps: Callable[[], Any]) -> None:
        """Run until each of the conditions has become true, in this order."""
        run_steps(self.source, steps)

    def watching(self) -> bool:
        """Return whether the list has been used and the watch is open."""
        return self.source.check().ready and bool(self.cluster.streams)

    def put(self, *changes: Any) -> Callable[[], bool]:
        """Return a step that changes the object (None: deletes it), and waits until it is read."""
        count = [0]

        def step() -> bool:
            if not count[0]:
                count[0] = len(self.source._waiting) + len(changes)
                for change in changes:
                    if change is None:
                        self.cluster.delete(PATH, written())
                    else:
                        self.cluster.put(PATH, change)
            return len(self.source._waiting) == count[0]

        return step

    def later(self, seconds: float) -> Callable[[], bool]:
        """Return a step that lets time pass, to the next check of due changes."""

        def step() -> bool:
            self.now += seconds
            self.source.use_due()
            return True

        return step

    def rate(self) -> float | None:
        """Return the rate of the first fabric that is in use."""
        used = self.state.snapshot.current_configuration
        return None if used is None else used.compiled.fabrics["v100-ib"].rate_gbps

    def poll(self) -> list[str]:
        """Do what the server does every second; return the logged messages."""
        if self.source.poll():
            self.source.apply(self.metrics, self.lines.log)
        return self.logged()

    def logged(self) -> list[str]:
        """Return the messages since the last call."""
        return [line["msg"] for line in self.lines.read()]

    def value(self, name: str) -> float | None:
        """Read a metric."""
        return self.metrics.registry.get_sample_value(f"rdma_webhook_{name}")


@pytest.fixture
def server() -> Server:
    """Return a server whose cluster has the object."""
    cluster = Cluster()
    cluster.put(PATH, written())
    return Server(cluster)


def note_rate(server: Server, rates: list[float | None]) -> Callable[[], bool]:
    """Return a step that records the rate in use."""

    def step() -> bool:
        rates.append(server.rate())
        return True

    return step


def test_the_object_of_the_first_list_is_used_at_once(server: Server) -> None:
    """Until that list the replica is unready; afterwards line, metrics and log name it."""
    before = server.source.check()
    server.run(server.watching)
    check = server.source.check()
    current = server.state.snapshot.current_configuration
    assert current is not None
    used = current.config_hash

    assert before == ("configuration", False, f"{CONFIGURATION_TITLE} has not been read yet")
    assert check == (
        "configuration",
        True,
        f"load 1, config {used} (v100-ib, a100-ib)",
    )
    assert [server.value(name) for name in ("configured", "config_loads_total")] == [1, 1]
    assert server.metrics.registry.get_sample_value("rdma_webhook_config_info", {"config": used})
    assert server.poll() == ["configuration loaded"]
    assert server.source.reason_without_fabrics == ""
    assert [probe() for probe in server.state.probes] == [check]


def test_only_the_object_of_that_name_is_read(server: Server) -> None:
    """No list or watch requests another object."""
    server.run(server.watching)
    assert [query["fieldSelector"] for path, query in server.cluster.asked if path == PATH] == [
        "metadata.name=default"
    ] * 2


def test_a_change_is_used_three_seconds_after_it_was_read(server: Server) -> None:
    """It is not used earlier, so that every replica has read it before any uses it."""
    rates: list[float | None] = []
    server.run(
        server.watching,
        server.put(written(200, generation=2)),
        server.later(DELAY - 0.001),
        note_rate(server, rates),
        server.later(0.001),
        note_rate(server, rates),
    )
    assert rates == [100, 200]
    assert DELAY == 3.0


def test_a_change_decides_second_calls_as_soon_as_it_was_read(server: Server) -> None:
    """A pod that another replica decided with it is decided with it here, too."""
    hashes: list[str] = []
    config = parse_object(written(200), "").compiled.config_hash
    stated: Any = {
        "rdma": "yes",
        "because": "Equipped",
        "fabric": None,
        "applied": [],
        "config": config,
    }
    decided = pod(annotations={"rdma.lab/status": json.dumps(stated, separators=(",", ":"))})

    def note() -> bool:
        decision_inputs = [
            server.state.decision_input_for("lab", manifest) for manifest in (decided, pod())
        ]
        hashes.extend(
            decision_input.configuration.config_hash
            for decision_input in decision_inputs
            if decision_input is not None
        )
        return True

    server.run(server.watching, server.put(written(200)), note)
    assert hashes[0] == config != hashes[1]


def test_the_event_loop_sorts_no_nodes(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    """With thousands of nodes, all requests would wait: the thread of the watch sorts them."""
    threads: list[str] = []

    def noted(*given: Any) -> FabricIndex:
        threads.append(threading.current_thread().name)
        return build_fabric_index(*given)

    monkeypatch.setattr(state, "build_fabric_index", noted)
    node = Node(
        labels={"nvidia.com/gpu.product": "Tesla-V100-SXM2"}, resources={"nvidia.com/v100": 8}
    )
    learn(server.state, Facts(nodes={"n1": node}))
    server.run(server.watching, server.put(written(200)), server.later(DELAY))
    used = server.state.snapshot.current_configuration
    assert used is not None
    assert (server.rate(), used.fabric_index.by_node) == (200, {"n1": frozenset({"v100-ib"})})
    assert threads == ["fabricconfigurations"] * 2


def test_a_defect_in_sorting_nodes_leaves_the_last_valid_object(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The line has it as a reason, and the watch goes on."""

    def broken(*_: Any) -> FabricIndex:
        raise ValueError("secret")

    def fail(*, now: bool) -> Callable[[], bool]:
        def step() -> bool:
            monkeypatch.setattr(state, "build_fabric_index", broken if now else build_fabric_index)
            return True

        return step

    server.run(
        server.watching,
        fail(now=True),
        server.put(written(200)),
        server.later(DELAY),
        lambda: server.rate() == 100 and "ValueError" in server.in_use.error,
        fail(now=False),
        server.put(written(400)),
        server.later(DELAY),
        lambda: server.rate() == 400 and not server.in_use.error,
    )


def test_changes_take_effect_in_order_each_after_its_own_delay(server: Server) -> None:
    """The second of two within three seconds does not replace the first before its time."""
    rates: list[float | None] = []
    server.run(
        server.watching,
        server.put(written(200)),
        server.later(1.0),
        server.put(written(400)),
        server.later(DELAY - 1.0),
        note_rate(server, rates),
        server.later(0.5),
        note_rate(server, rates),
        server.later(0.5),
        note_rate(server, rates),
    )
    assert rates == [200, 200, 400]
    assert server.value("config_loads_total") == 3


def test_the_timer_puts_a_change_into_effect(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No request is needed: the event loop checks when a change is due."""
    monkeypatch.setattr(configuration_object, "DELAY", 0.05)
    server.source._clock = time.monotonic

    def change() -> bool:
        server.cluster.put(PATH, written(200), written(400))
        return True

    server.run(server.watching, change, lambda: server.rate() == 400)
    assert server.value("config_loads_total") == 3


def test_a_timer_that_is_early_looks_again(server: Server) -> None:
    """The event loop's clock is not the clock of the changes."""
    readings = iter([1000.0, 1000.0, 1002.9999, 1003.0, 1003.0])
    server.run(server.watching, server.put(written(200)))
    calls: list[float] = []
    server.source._clock = lambda: next(readings)
    server.source._loop = Timers(calls)  # type: ignore[assignment]
    for _ in range(4):
        server.source.use_due()
    assert server.rate() == 200
    assert calls == pytest.approx([3.0, 3.0, 0.001])


class Timers:
    """An event loop that only records its timers."""

    def __init__(self, calls: list[float]) -> None:
        self._calls = calls

    def call_later(self, seconds: float, _: Callable[[], None]) -> None:
        """Record the seconds."""
        self._calls.append(seconds)


@pytest.mark.parametrize(
    ("age", "delayed"), [(0.0, True), (59.0, True), (-500.0, True), (61.0, False)], ids=str
)
def test_a_recent_write_delays_the_start(age: float, delayed: bool) -> None:
    """The start waits until all replicas use it: this process cannot see what they use."""
    cluster = Cluster()
    entries = [
        {"manager": "a", "time": "2026-01-01T00:00:00Z"},
        {"manager": "b", "time": "2026-01-01T12:00:00Z"},
        {"manager": "c", "time": "2026-01-02T00:00:00Z", "subresource": "status"},
    ]
    cluster.put(PATH, written(managed=entries))
    server = Server(cluster)
    noon = datetime(2026, 1, 1, 12, tzinfo=UTC).timestamp()
    server.source._wall_clock = lambda: noon + age
    checks = []

    def note() -> bool:
        checks.append(server.source.check())
        return True

    server.run(lambda: server.rate() == 100, note, server.later(SETTLE_SECONDS - 0.001), note)
    server.now += 0.001
    checks.append(server.source.check())
    assert [check.ready for check in checks] == [not delayed, not delayed, True]
    assert ("was written a moment ago" in checks[0].detail) == delayed
    assert server.value("configured") == 1


def test_a_write_without_a_time_delays_nothing(server: Server) -> None:
    """Today's API servers always set it; another one must not keep replicas from starting."""
    server.run(server.watching)
    assert server.source.check().ready


def test_a_change_of_labels_is_read_once(server: Server) -> None:
    """The time of a write is not part of the object."""
    labeled = written(managed=[{"manager": "a", "time": "2026-01-01T00:00:00Z"}])

    def note() -> bool:
        server.cluster.put(PATH, labeled)
        return True

    server.run(server.watching, note, server.put(written(200)), server.later(DELAY), lambda: True)
    assert server.value("config_loads_total") == 2


def test_a_change_of_status_changes_nothing(server: Server) -> None:
    """Nor does a change of managedFields or labels: nothing is read again."""
    noted = written(status={"nodes": 7})
    noted["metadata"] |= {"managedFields": [{"manager": "x"}], "labels": {"a": "b"}}
    rates: list[float | None] = []

    def note() -> bool:
        server.cluster.put(PATH, noted)
        return True

    server.run(
        server.watching,
        note,
        server.put(written(200)),
        server.later(DELAY),
        note_rate(server, rates),
    )
    assert rates == [200]
    assert server.value("config_loads_total") == 2


def test_an_unusable_object_leaves_the_last_valid_object_in_use(server: Server) -> None:
    """Line, metric, Event and log report it, until the object is correct again."""
    server.run(
        server.watching,
        server.put(written("fast")),
        server.later(DELAY),
    )
    check = server.source.check()
    assert server.rate() == 100
    assert check.ready
    assert "still in use, because a newer one cannot be used: " in check.detail
    assert f"{CONFIGURATION_TITLE}: spec.fabrics[0].rateGbps" in check.detail
    assert "\n" not in check.detail
    assert [server.value("configured"), server.value("config_last_reload_successful")] == [1, 0]
    assert server.logged() == ["configuration loaded", "configuration not usable"]


def test_it_is_used_again_once_it_is_correct(server: Server) -> None:
    """This holds even if it is the configuration that stayed in use."""
    server.run(
        server.watching,
        server.put(written("fast")),
        server.later(DELAY),
        server.put(written(100)),
        server.later(DELAY),
    )
    assert "still in use" not in server.source.check().detail
    assert server.value("config_last_reload_successful") == 1


def test_without_a_valid_object_an_unusable_object_counts_as_missing() -> None:
    """The replica is ready, and no pod can be decided; the text names no value of the object."""
    cluster = Cluster()
    cluster.put(PATH, written("fast"))
    server = Server(cluster)
    server.run(server.watching)
    check = server.source.check()

    assert (check.ready, server.state.snapshot.current_configuration) == (True, None)
    assert check.detail.startswith(f"{CONFIGURATION_TITLE}: spec.fabrics[0].rateGbps: ")
    assert (
        server.state.snapshot.reason_without_fabrics
        == server.source.reason_without_fabrics
        == NOT_USABLE
    )
    assert [server.value("configured"), server.value("config_last_reload_successful")] == [0, 0]
    assert server.logged() == ["configuration not usable"]


def test_an_object_without_fabrics_counts_as_missing(server: Server) -> None:
    """`fabrics: []` cannot be intended: the text names what to add, and where."""
    server.run(
        server.watching,
        server.put(written(fabrics=0)),
        server.later(DELAY),
    )
    check = server.source.check()

    assert server.state.snapshot.current_configuration is None
    assert server.state.snapshot.reason_without_fabrics == NO_FABRICS
    assert (check.ready, check.detail.endswith(f" ({NO_FABRICS})")) == (True, True)
    assert server.value("configured") == 0
    assert server.value("config_last_reload_successful") == 1


def test_a_deleted_object_no_longer_decides(server: Server) -> None:
    """Three seconds after its deletion: ready, with what to apply in text, line and log."""
    rates: list[float | None] = []
    server.run(
        server.watching,
        server.put(None),
        server.later(DELAY - 0.001),
        note_rate(server, rates),
        server.later(0.001),
    )
    check = server.source.check()
    assert rates == [100]
    assert server.state.snapshot.current_configuration is None
    assert server.state.snapshot.reason_without_fabrics == NO_OBJECT
    assert (check.ready, check.detail) == (True, NO_OBJECT)
    assert "kubectl apply -f fabrics.yaml" in NO_OBJECT
    assert [reflector.failures for reflector in server.source._informers.reflectors] == [0]
    assert server.value("configured") == 0
    assert server.metrics.registry.get_sample_value("rdma_webhook_config_info") is None
    assert server.logged() == ["configuration loaded", "no fabrics"]


def test_without_an_object_it_is_ready_and_names_what_to_apply() -> None:
    """The first object that is applied is used three seconds later."""
    server = Server(Cluster())
    checks = []

    def note() -> bool:
        checks.append(server.source.check())
        return True

    server.run(server.watching, note, server.put(written()), server.later(DELAY))
    assert (checks[0].ready, checks[0].detail) == (True, NO_OBJECT)
    assert server.rate() == 100
    assert server.source.reason_without_fabrics == ""


class WithoutKind(Cluster):
    """An API server without the kind, as long as `missing` is true."""

    missing = 404

    def get(self, path: str, query: Any) -> dict[str, Any]:
        """Refuse to list."""
        if self.missing:
            raise refused(self.missing)
        return super().get(path, query)


def test_without_the_kind_it_is_ready_and_names_the_definition() -> None:
    """Once both exist, the object is used; while the kind is missing, one line reports it."""
    cluster = WithoutKind()
    server = Server(cluster)
    checks = []

    def define() -> bool:
        checks.append(server.source.check())
        assert server.poll() == ["no fabrics"]
        cluster.missing = 0
        cluster.put(PATH, written())
        return True

    server.run(
        lambda: server.source._reflector.failures > 5,
        define,
        lambda: bool(cluster.streams),
        lambda: bool(server.source._waiting),
        server.later(DELAY),
    )
    assert (checks[0].ready, checks[0].detail) == (True, NO_KIND)
    assert "manifests/crd" in NO_KIND
    assert server.rate() == 100
    assert cluster.asked[-1][0] == PATH


def test_a_kind_that_goes_takes_its_object_along(server: Server) -> None:
    """Deleting the definition deletes the object, however the watch ends."""
    cluster = WithoutKind()
    cluster.missing = 0
    cluster.put(PATH, written())
    server = Server(cluster)

    def drop() -> bool:
        cluster.missing = 404
        cluster.watch(PATH).send(ClusterError("the connection was closed"))
        return True

    server.run(
        server.watching, drop, lambda: bool(server.source._waiting), server.later(DELAY),
    )  # fmt: skip
    assert server.state.snapshot.current_configuration is None
    assert server.source.check().detail == NO_KIND


def test_a_missing_right_is_not_a_missing_object() -> None:
    """A replica that may not read the object stays unready: its predecessors go on."""
    cluster = WithoutKind()
    cluster.missing = 403
    server = Server(cluster)
    server.run(lambda: server.source._reflector.failures > 2)
    check = server.source.check()

    assert (check.ready, check.detail) == (False, "the API server answered 403: no")
    assert server.poll() == ["configuration not current"]
    assert server.state.snapshot.reason_without_fabrics == State().snapshot.reason_without_fabrics


def test_an_outage_changes_nothing_but_the_line(server: Server) -> None:
    """The object stays in use, and the log has a line at the start and the end."""
    logged: list[str] = []

    def leave() -> bool:
        logged.extend(server.poll())
        server.cluster.failures += [ClusterError("cannot reach it")] * 500
        server.cluster.watch(PATH).send(ClusterError("cannot reach it"))
        return True

    def problem() -> bool:
        return server.source.check().detail.endswith("; not current: cannot reach it")

    def back() -> bool:
        logged.extend(server.poll())
        assert server.source.check().ready
        server.cluster.failures.clear()
        return True

    server.run(server.watching, leave, problem, back, lambda: not server.source._reflector.problem)
    logged.extend(server.poll())
    assert server.rate() == 100
    assert logged == ["configuration loaded", "configuration not current", "configuration current"]


def test_a_defect_while_reading_is_an_unusable_object(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The watch goes on: the next change is used."""
    name = "webhook.serve.sources.configuration_object.parse_object"

    def broken(*_: Any) -> None:
        raise KeyError("oh")

    def repair() -> bool:
        assert server.rate() == 100
        assert "KeyError('oh')" in server.source.check().detail
        monkeypatch.undo()
        return True

    def break_it() -> bool:
        monkeypatch.setattr(name, broken)
        return True

    server.run(
        server.watching,
        break_it,
        server.put(written(200)),
        server.later(DELAY),
        repair,
        server.put(written(400)),
        server.later(DELAY),
    )
    assert server.rate() == 400
