"""Rights of users, as the API server's authorizer sees them a moment after a change of roles."""

from __future__ import annotations

from tests.cluster.cluster import Cluster
from tests.e2e.wire import send
from tests.waiting import until

_REVIEWS = "authorization.k8s.io/v1"


def is_allowed(
    cluster: Cluster, user: str, verb: str, resource: str, *, space: str = "", name: str = ""
) -> bool:
    """Ask the API server whether a user has a permission; the kind need not exist.

    `resource`: RESOURCE, RESOURCE/SUBRESOURCE or RESOURCE.GROUP, of one namespace with `space`.
    """
    resource, _, group = resource.partition(".")
    resource, _, subresource = resource.partition("/")
    attributes = {
        "verb": verb,
        "group": group,
        "resource": resource,
        "subresource": subresource,
        "namespace": space,
        "name": name,
        "version": "*",
    }
    spec = {"user": user, "groups": ["system:authenticated"], "resourceAttributes": attributes}
    review = {"apiVersion": _REVIEWS, "kind": "SubjectAccessReview", "spec": spec}
    response = send(cluster, "POST", f"/apis/{_REVIEWS}/subjectaccessreviews", review)
    assert response.code == 201, response.refusal
    return bool(response.object["status"]["allowed"])


def wait_for_right(
    cluster: Cluster, user: str, verb: str, resource: str, *, space: str = "", name: str = ""
) -> None:
    """Wait until the API server knows about a permission that has been granted."""
    until(lambda: is_allowed(cluster, user, verb, resource, space=space, name=name))


def service_account(space: str, name: str) -> str:
    """Return the user name of a service account."""
    return f"system:serviceaccount:{space}:{name}"
