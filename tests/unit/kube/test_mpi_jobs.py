"""MPIJobs over HTTP: the requests, and the meaning of their answers."""

from __future__ import annotations

from typing import Any, cast

import pytest

from webhook.kube.api import StatusError
from webhook.kube.client import Client
from webhook.kube.pods import MpiJobs

GROUP = "/apis/kubeflow.org/v2beta1"
JOB: dict[str, Any] = {"metadata": {"name": "verify-1", "namespace": "lab"}}
MISSING = {"kind": "Status", "message": "the server could not find the requested resource"}


class Answering:
    """A client with the same answer to each request, which records the requests."""

    def __init__(self, status: int, answer: dict[str, Any] | None = None) -> None:
        self.asked: list[tuple[Any, ...]] = []
        self._answer = status, answer or {}

    def send(self, *request: Any, query: Any = None) -> tuple[int, dict[str, Any]]:
        """Record a request, and answer."""
        self.asked.append((*request, query))
        return self._answer


def jobs(answering: Answering, namespace: str = "lab") -> MpiJobs:
    """Return the jobs of a namespace."""
    return MpiJobs(cast("Client", answering), namespace)


def test_create() -> None:
    """A job is posted; an existing one is ours."""
    for status in (201, 409):
        api = Answering(status)
        jobs(api).create(JOB)
        assert api.asked == [
            ("POST", f"{GROUP}/namespaces/lab/mpijobs", JOB, "application/json", None)
        ]


def test_without_mpi_operator() -> None:
    """The path does not exist; the error names the operator to install, on one line.

    It is an answer, so there are no retries.
    """
    message = r"the cluster has no MPIJobs .*; install mpi-operator"
    with pytest.raises(StatusError, match=message) as refused:
        jobs(Answering(404, MISSING)).create(JOB)
    assert refused.value.code == 404
    assert jobs(Answering(404, MISSING)).list("a=b") == []


def test_without_the_namespace() -> None:
    """A namespace that does not exist is another error."""
    answer = {"message": 'namespaces "lab" not found', "details": {"kind": "namespaces"}}
    with pytest.raises(StatusError, match='namespaces "lab" not found'):
        jobs(Answering(404, answer)).create(JOB)


def test_list() -> None:
    """Jobs are listed by labels, in one or all namespaces."""
    api = Answering(200, {"items": [JOB]})
    assert jobs(api).list("a=b") == [JOB]
    assert jobs(api, "").list("a=b") == [JOB]
    query = [("labelSelector", "a=b")]
    assert api.asked == [
        ("GET", f"{GROUP}/namespaces/lab/mpijobs", query),
        ("GET", f"{GROUP}/mpijobs", query),
    ]


def test_delete() -> None:
    """A job is deleted with its pods; a missing one is not an error."""
    for status in (200, 404):
        api = Answering(status)
        jobs(api, "").delete(JOB)
        query = [("propagationPolicy", "Background")]
        assert api.asked == [("DELETE", f"{GROUP}/namespaces/lab/mpijobs/verify-1", query)]


@pytest.mark.parametrize("request_", ["create", "list", "delete"])
def test_without_the_right(request_: str) -> None:
    """A rejected request is an error with the server's message."""
    mpi_jobs = jobs(Answering(403, {"message": "forbidden: you may not"}))
    with pytest.raises(StatusError, match="you may not"):
        getattr(mpi_jobs, request_)("a=b" if request_ == "list" else JOB)
