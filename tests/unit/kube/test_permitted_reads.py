"""Failed reads return None, and are recorded once."""

from __future__ import annotations

from typing import Any

from webhook.errors import ClusterError
from webhook.kube.api import Query, StatusError
from webhook.kube.cluster_reads import BestEffortReads, ReadFailure


class Pages:
    """An API server with a sequence of objects or errors as answers."""

    def __init__(self, *answers: Any) -> None:
        self._answers = list(answers)
        self.queries: list[Query] = []

    def get(self, _: str, query: Query) -> dict[str, Any]:
        """Return the next answer."""
        self.queries.append(query)
        answer = self._answers.pop(0)
        if isinstance(answer, ClusterError):
            raise answer
        return dict(answer)


def test_an_object() -> None:
    """It is returned unchanged."""
    assert BestEffortReads(Pages({"a": 1})).get("/x", "x") == {"a": 1}


def test_what_cannot_be_read() -> None:
    """Its code, if the API server answered, and the message, each failure once."""
    silent = ClusterError("no\n answer.")
    reads = BestEffortReads(Pages(StatusError(403, "no"), StatusError(403, "no"), silent))
    assert reads.get("/x", "x") is None
    assert reads.list("/x", "x") is None
    assert reads.get("/y", "y") is None
    refused = ReadFailure("x", 403, "the API server answered 403: no")
    assert reads.failures == [refused, ReadFailure("y", 0, "no answer")]


def test_all_pages_of_a_list() -> None:
    """Each page has the query; items that are not objects are left out."""
    first = {"items": [{"n": 1}, 7], "metadata": {"continue": "more"}}
    pages = Pages(first, {"items": [{"n": 2}], "metadata": None})
    assert BestEffortReads(pages).list("/x", "x", {"a": "b"}) == [{"n": 1}, {"n": 2}]
    assert pages.queries == [
        {"a": "b", "limit": "500"},
        {"a": "b", "limit": "500", "continue": "more"},
    ]


def test_a_list_that_breaks() -> None:
    """Half of it would mislead."""
    first = {"items": [{"n": 1}], "metadata": {"continue": "more"}}
    reads = BestEffortReads(Pages(first, StatusError(410, "too old")))
    assert reads.list("/x", "x") is None
    assert [failure.code for failure in reads.failures] == [410]


def test_a_list_without_items() -> None:
    """For example, the answer of a proxy."""
    assert BestEffortReads(Pages({"items": "no"})).list("/x", "x") == []
