from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from tests.unit.kube.cluster import (
    LIMIT_RANGES,
    NAMESPACES,
    Cluster,
    bookmark,
    event,
    gone,
    limit_range,
    namespace,
    node,
    refused,
)
from tests.waiting import until
from webhook.errors import ClusterError
from webhook.kube import watched_resources
from webhook.kube.reflector import SILENCE, STEADY, Change, Reflector
from webhook.kube.watched_resources import WatchedResource
from webhook.model.facts import key_of

MAX: Any = {"max": {"memory": "1Gi"}}


class Watching:
    """A reflector under a test's control: each attempt has prepared events."""

    def __init__(
        self, cluster: Cluster, kind: WatchedResource[object] = watched_resources.NAMESPACES
    ) -> None:
        self.cluster = cluster
        self.delivered: list[list[Change]] = []
        self.now = 0.0
        self.reflector = Reflector(
            kind, lambda: cluster, self._deliver, lambda: iter(()), lambda: self.now
        )
        self._path = kind.path

    def _deliver(self, _: WatchedResource[object], changes: list[Change]) -> None:
        self.delivered.append(changes)

    def attempt(self, *events: Any) -> list[list[Change]]:
        """List and watch with these events, and return the delivered changes."""
        self.delivered.clear()
        begin = self.cluster.stream

        def stream(*request: Any) -> Any:
            begun = begin(*request)
            begun.send(*events, None)
            return begun

        self.cluster.stream = stream  # type: ignore[method-assign, assignment]
        self.reflector.attempt()
        self.cluster.stream = begin  # type: ignore[method-assign]
        return self.delivered

    def requests(self) -> list[str]:
        """List the requests since the last call, each as `list` or `watch VERSION`."""
        words = [
            f"watch {q['resourceVersion']}"
            if "watch" in q
            else "version"
            if q["limit"] == "1"
            else "list"
            for _, q in self.cluster.asked
        ]
        self.cluster.asked.clear()
        return words


def names(changes: list[Change]) -> dict[str, bool]:
    """Return name → whether it has a projection."""
    return {name: projection is not None for (_, name), projection in changes}


def test_a_list_comes_first_and_then_the_events_since() -> None:
    """The list is delivered at once, even if it is empty; the watch begins at its version."""
    watching = Watching(Cluster())
    assert watching.attempt() == [[]]
    assert watching.requests() == ["list", "watch 100"]

    watching.cluster.put(NAMESPACES, namespace("a"), namespace("b"))
    watching = Watching(watching.cluster)
    assert [names(changes) for changes in watching.attempt()] == [{"a": True, "b": True}]
    assert watching.requests() == ["list", "watch 102"]


def test_a_long_list_is_read_in_pages() -> None:
    """Each page has the requested size; no request has a resourceVersion, which could be old."""
    cluster = Cluster(page=2)
    cluster.put(NAMESPACES, *(namespace(name) for name in "abcde"))
    watching = Watching(cluster)

    (delivered,) = watching.attempt()
    assert names(delivered) == dict.fromkeys("abcde", True)
    lists = [query for _, query in cluster.asked[:-1]]
    limit = str(watched_resources.NAMESPACES.page)
    assert lists == [
        {"limit": limit},
        {"limit": limit, "continue": "2"},
        {"limit": limit, "continue": "4"},
    ]


def test_a_watch_asks_for_bookmarks_and_an_end() -> None:
    """Bookmarks distinguish quiet from dead watches; timeouts vary, to spread their ends."""
    watching = Watching(Cluster())
    watching.attempt()
    watch = watching.cluster.watch(NAMESPACES)

    assert watch.query["allowWatchBookmarks"] == "true"
    assert 300 <= int(watch.query["timeoutSeconds"]) <= 600
    assert watch.silence == SILENCE > 60
    assert watch.closed
    quiet = Watching(Cluster(), watched_resources.CONFIGURATIONS)
    quiet.attempt()
    shortest, longest = watched_resources.CONFIGURATIONS.watch_seconds
    timeout = quiet.cluster.watch(watched_resources.CONFIGURATIONS.path).query["timeoutSeconds"]
    assert shortest <= int(timeout) <= longest


def test_events_are_delivered_where_they_matter() -> None:
    """A change outside the projection is not delivered, but each event advances the version."""
    watching = Watching(Cluster())
    quiet = namespace("a", labels={"team": "x"}, resourceVersion="7")
    enforcing = namespace("a", labels={"pod-security.kubernetes.io/enforce": "baseline"})
    delivered = watching.attempt(
        event("ADDED", namespace("a"), 101),
        event("MODIFIED", quiet, 102),
        event("MODIFIED", enforcing, 103),
        bookmark(110),
        event("DELETED", enforcing, 111),
        event("DELETED", namespace("never-seen"), 112),
    )
    assert [names(changes) for changes in delivered] == [{}, {"a": True}, {"a": True}, {"a": False}]
    watching.requests()
    watching.cluster.version = 112
    watching.attempt()
    assert watching.requests() == ["version", "watch 112"]


def test_of_a_limit_range_without_consequence_nothing_is_kept() -> None:
    """A limit that matters is added, and then removed again."""
    watching = Watching(Cluster(), watched_resources.LIMIT_RANGES)
    watching.cluster.put(LIMIT_RANGES, limit_range())
    delivered = watching.attempt(
        event("MODIFIED", limit_range(**MAX), 102), event("MODIFIED", limit_range(), 103)
    )
    key = ("lab", "sizes")
    assert delivered == [
        [],
        [Change(key, "LimitRange sizes sets max.memory")],
        [Change(key, None)],
    ]
    assert watching.reflector.object_count == 0


@pytest.mark.parametrize(
    "failure",
    [ClusterError("cannot reach it"), refused(403), refused(429), KeyError("ours")],
    ids=str,
)
def test_after_a_failure_everything_is_listed_again(failure: Exception) -> None:
    """The next API server may be another one, where the version has no meaning."""
    watching = Watching(Cluster())
    watching.attempt(event("ADDED", namespace("a"), 101))
    watching.requests()
    watching.cluster.failures.append(failure)
    watching.attempt()
    watching.requests()
    watching.attempt()
    assert watching.requests()[0] == "list"


def test_a_watch_that_ends_goes_on_where_it_was() -> None:
    """Nothing is listed again; a bookmark advances the version as an event does."""
    watching = Watching(Cluster())
    watching.attempt(event("ADDED", namespace("a"), 101), bookmark(110))
    watching.requests()
    watching.cluster.version = 110
    watching.attempt()
    assert watching.requests() == ["version", "watch 110"]
    assert watching.reflector.failures == 0


def test_a_version_in_the_future_is_listed_at_once() -> None:
    """A restore of etcd sets versions back, and a watch of a later version would stay silent."""
    watching = Watching(Cluster())
    watching.attempt(event("ADDED", namespace("a"), 1000))
    watching.requests()
    watching.cluster.version = 999
    watching.cluster.forget(NAMESPACES, namespace("b", annotations={"rdma.lab/fabric": "north"}))
    watching.cluster.version = 999
    (delivered,) = watching.attempt()
    assert watching.requests() == ["version", "list", "watch 999"]
    assert names(delivered) == {"a": False, "b": True}
    assert watching.reflector.failures == 0


def test_an_error_in_the_stream_lists_again() -> None:
    """An error ends the watch; a comparison with the new list shows the missed changes."""
    watching = Watching(Cluster())
    a, b, c = namespace("a"), namespace("b"), namespace("c")
    watching.cluster.put(NAMESPACES, a, b)
    watching.attempt(gone(500), event("ADDED", c, 199))
    problem = watching.reflector.problem
    labeled = namespace("b", annotations={"rdma.lab/fabric": "north"})
    watching.cluster.forget(NAMESPACES, labeled, c)

    assert problem == "the API server answered 500: too old resource version"
    (delivered,) = watching.attempt()
    assert names(delivered) == {"a": False, "b": True, "c": True}
    assert watching.reflector.list_count == 2
    assert (watching.attempt(), watching.reflector.list_count) == ([], 2)


def test_a_forgotten_version_is_listed_at_once() -> None:
    """After a restart of the API server this needs no pause and is not a failure, but only once."""
    watching = Watching(Cluster())
    watching.attempt()
    watching.requests()
    watching.cluster.failures += [None, refused(410)]
    watching.attempt()
    assert watching.requests() == ["version", "watch 100", "list", "watch 100"]
    assert (watching.reflector.problem, watching.reflector.failures) == ("", 0)

    watching.attempt(gone())
    assert watching.requests() == ["version", "watch 100", "list", "watch 100"]
    assert watching.reflector.failures == 1
    watching.attempt()
    assert watching.requests() == ["list", "watch 100"]


def test_pages_that_expire_are_read_again_from_the_first() -> None:
    """A continue token is valid for minutes; known objects are kept meanwhile."""
    watching = Watching(Cluster(page=1))
    watching.cluster.put(NAMESPACES, namespace("a"), namespace("b"))
    watching.cluster.failures += [refused(410)]
    assert watching.attempt() == []
    assert [names(changes) for changes in watching.attempt()] == [{"a": True, "b": True}]


@pytest.mark.parametrize(
    "kind", [watched_resources.NAMESPACES, watched_resources.NODES], ids=lambda kind: kind.resource
)
def test_a_list_that_expires_at_a_later_page_is_read_again(kind: WatchedResource[object]) -> None:
    """The versions of its pages would differ; nothing of the first attempt is used."""
    cluster = Cluster(page=1)
    cluster.put(kind.path, node("a"), node("b"))
    watching = Watching(cluster, kind)
    get = cluster.get

    def expired(path: str, query: Any) -> Any:
        if query.get("continue"):
            raise refused(410)
        return get(path, query)

    cluster.get = expired  # type: ignore[method-assign]
    assert watching.attempt() == []
    assert watching.reflector.object_count == 0
    cluster.get = get  # type: ignore[method-assign]
    assert [names(changes) for changes in watching.attempt()] == [{"a": True, "b": True}]


FABRICS = WatchedResource(
    resource="fabricconfigurations",
    group="rdma.lab",
    version="v1alpha1",
    project=lambda item: key_of(item)[1],
    selector="metadata.name=default",
    page=50,
    optional=True,
)


def test_a_kind_says_which_objects_it_reads() -> None:
    """Lists and watches have its selector, lists its page size, and paths its group."""
    cluster = Cluster(page=1)
    assert FABRICS.path == "/apis/rdma.lab/v1alpha1/fabricconfigurations"
    cluster.put(FABRICS.path, namespace("default"), namespace("more"))
    watching = Watching(cluster, FABRICS)
    watching.attempt()
    first, second, watch = [query for _, query in cluster.asked]
    assert first == {"fieldSelector": "metadata.name=default", "limit": "50"}
    assert second == {**first, "continue": "1"}
    assert watch["fieldSelector"] == "metadata.name=default"
    assert "limit" not in watch


@pytest.mark.parametrize("code", [404, 403])
def test_an_optional_kind_may_be_missing(code: int) -> None:
    """It counts as an empty list, so that nobody waits for it; the problem is reported."""
    watching = Watching(Cluster(), FABRICS)
    watching.cluster.failures.append(refused(code))
    assert watching.attempt() == [[]]
    assert watching.reflector.problem == f"the API server answered {code}: no"
    assert (watching.reflector.list_count, watching.reflector.absent) == (1, True)
    watching.cluster.put(FABRICS.path, namespace("default"))
    assert [names(changes) for changes in watching.attempt()] == [{"default": True}]
    assert (watching.reflector.problem, watching.reflector.absent) == ("", False)


def test_an_optional_kind_may_have_to_be_readable() -> None:
    """A missing right looks like a missing object: nothing is delivered."""
    watching = Watching(Cluster(), replace(FABRICS, forbidden_is_error=True))
    watching.cluster.failures += [refused(403), refused(404)]
    assert watching.attempt() == []
    assert (watching.reflector.list_count, watching.reflector.absent) == (0, False)
    assert watching.attempt() == [[]]
    assert (watching.reflector.list_count, watching.reflector.absent) == (1, True)


def test_a_kind_that_is_removed_takes_its_objects_along() -> None:
    """The objects of a removed kind are dropped; unreadable ones stay."""
    watching = Watching(Cluster(), FABRICS)
    watching.cluster.put(FABRICS.path, namespace("default"))
    watching.attempt(gone(500))
    watching.cluster.failures.append(refused(403))
    assert watching.attempt() == []
    watching.cluster.failures.append(refused(404))
    assert [names(changes) for changes in watching.attempt()] == [{"default": False}]


def test_a_kind_that_is_needed_must_be_there() -> None:
    """Without the namespaces, nothing is delivered: decisions wait for them."""
    watching = Watching(Cluster())
    watching.cluster.failures += [refused(403), refused(404)]
    assert watching.attempt() == watching.attempt() == []
    assert watching.reflector.list_count == 0


def test_problems_are_reported_until_they_are_over() -> None:
    """A refusal is one line; a defect has only its type, and the exception is kept for the log."""
    watching = Watching(Cluster())
    reflector = watching.reflector
    watching.cluster.failures += [ClusterError("cannot reach it"), ValueError("secret")]
    watching.attempt()
    assert [reflector.problem, reflector.defect, reflector.last_contact] == [
        "cannot reach it",
        None,
        None,
    ]
    watching.attempt()
    assert reflector.problem == "internal error: ValueError"
    assert isinstance(reflector.defect, ValueError)
    watching.now = 5.0
    watching.attempt()
    assert [reflector.problem, reflector.defect, reflector.last_contact] == ["", None, 5.0]
    assert reflector.failures == 2


class Paced:
    """A running reflector whose pauses are recorded but take no time."""

    def __init__(self, cluster: Cluster, attempts: int) -> None:
        self.now = 0.0
        self.took: list[float] = []
        self.pauses: list[int] = []
        self._left = attempts
        self.reflector = Reflector(
            watched_resources.NAMESPACES,
            lambda: cluster,
            lambda *_: None,
            self._delays,
            lambda: self.now,
        )

    def _delays(self) -> Iterator[float]:
        for number in range(100):
            self.pauses.append(number)
            self._left -= 1
            if self._left == 0:
                self.reflector.stop()
            self.now += self.took.pop(0) if self.took else 0.0
            yield 0.0


def test_pauses_grow_and_begin_anew_after_a_watch_that_held() -> None:
    """The API server is not called in a tight loop while it is gone or ends each watch at once."""
    cluster = Cluster()
    cluster.failures += [ClusterError("gone")] * 100
    paced = Paced(cluster, 5)
    paced.reflector.start()
    assert paced.reflector.join(20)
    assert paced.pauses == [0, 1, 2, 3, 4]
    assert paced.reflector.failures == 5


def test_a_watch_that_held_is_followed_at_once() -> None:
    """The pauses start again from the shortest."""
    cluster = Cluster()
    paced = Paced(cluster, 5)
    durations = [0.0, STEADY, 0.0, STEADY + 1, 0.0]

    def attempt() -> None:
        paced.now += durations.pop(0)

    paced.reflector.attempt = attempt  # type: ignore[method-assign]
    paced.reflector.start()
    assert paced.reflector.join(20)
    assert paced.pauses == [0, 0, 1, 0, 1]


class Stop:
    """Takes the place of the event that ends a reflector; it is set after some waits."""

    def __init__(self, after: int) -> None:
        self.waits: list[float] = []
        self._after = after

    def is_set(self) -> bool:
        """Return whether the reflector ends."""
        return len(self.waits) >= self._after

    def wait(self, seconds: float) -> bool:
        """Wait for no time."""
        self.waits.append(seconds)
        return self.is_set()


@pytest.mark.parametrize(
    ("error", "waits"),
    [(refused(429), [0.25, 0.5]), (refused(429, 7.0), [7.0, 7.0]), (refused(503, 0.3), [0.3, 0.5])],
    ids=["no Retry-After", "a long one", "a short one"],
)
def test_a_busy_api_server_says_when_to_ask_again(error: Exception, waits: list[float]) -> None:
    """A pause after a watch is at least as long as its Retry-After."""
    cluster = Cluster()
    watching = Watching(cluster)

    def busy(*_: Any) -> Any:
        raise error

    cluster.stream = busy  # type: ignore[method-assign, assignment]
    stop = watching.reflector._stop = Stop(2)  # type: ignore[assignment]
    watching.reflector._pauses = lambda: iter([0.25, 0.5])
    watching.reflector._run()
    assert stop.waits == waits


def test_it_ends_while_it_waits_for_events() -> None:
    """It does not wait for the next event, and does not count it as a failure."""
    cluster = Cluster()
    listed: list[Any] = []
    reflector = Reflector(
        watched_resources.NAMESPACES,
        lambda: cluster,
        lambda *delivery: listed.append(delivery),
        lambda: iter([0.0] * 9),
    )
    reflector.start()
    until(lambda: bool(cluster.streams))
    reflector.stop()
    assert reflector.join(20)
    assert (reflector.failures, cluster.watch(NAMESPACES).closed) == (0, True)
    assert len(listed) == 1
