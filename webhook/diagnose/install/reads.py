"""The reads of an installation, with the rights of the user, and the dry runs of pods.

An object that cannot be read becomes a `Reading` with the obstacle. ClusterError means that the API
server does not answer, or does not accept the credentials.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from http import HTTPStatus
from typing import NamedTuple, Protocol

from webhook.config.custom_resource import CONFIGURATION_TITLE
from webhook.diagnose.install.facts import (
    NAME,
    PREVIEW_NAME,
    CertificateFacts,
    ClockFacts,
    InstallFacts,
    InstallNames,
    PolicyReading,
    Reading,
    ReplicaReading,
    TriedPod,
    TriedPods,
)
from webhook.diagnose.install.policies import ADVISERS, GUARDS
from webhook.diagnose.install.records import (
    ConfigurationRecord,
    DeploymentRecord,
    running_pods,
)
from webhook.diagnose.install.tried_pods import is_labeled, tried_pod
from webhook.errors import ClusterError
from webhook.kube.api import PlainAnswer, message_of, path_segment
from webhook.kube.objects import Manifest
from webhook.kube.watched_resources import CONFIGURATION_PATH
from webhook.text.readiness import read_readiness

_ADMISSION = "/apis/admissionregistration.k8s.io/v1"
_RBAC = "/apis/rbac.authorization.k8s.io/v1"
_DEFINITION = "fabricconfigurations.rdma.lab"
_SELECTOR = f"app.kubernetes.io/name={NAME}"
_HEALTH_PORT = 8080
#: Any user may read it.
_VERSION_PATH = "/version"
_DRY_RUN = ("dryRun", "All")


class InstallApi(Protocol):
    """An API server."""

    def send(
        self,
        method: str,
        path: str,
        body: Manifest | None = None,
        content_type: str = "",
        query: list[tuple[str, str]] | None = None,
    ) -> tuple[int, Manifest]:
        """Return the status and the object of an answer; raise ClusterError without an answer."""

    def plain(self, path: str) -> PlainAnswer:
        """Return an answer that need not be an object; raise ClusterError without an answer."""


#: Returns the facts about certificates; the argument says whether replicas issue them themselves.
InspectCertificates = Callable[[bool], CertificateFacts]


class InstallOptions(NamedTuple):
    """What to read."""

    names: InstallNames
    version: str
    #: The namespace for the dry runs; "" for none.
    tried_namespace: str = ""


def read_installation(
    api: InstallApi,
    options: InstallOptions,
    inspect: InspectCertificates,
    now: Callable[[], datetime],
) -> InstallFacts:
    """Read everything; raise ClusterError if the API server does not answer."""
    names, reads = options.names, _Reads(api)
    clocks = read_clocks(api, now)
    deployment = reads.get(f"Deployment {NAME}", _in(names, "apis/apps/v1", "deployments", NAME))
    reads_files = DeploymentRecord.read(deployment.manifest).reads_certificate_files
    self_managed = deployment.manifest is not None and not reads_files
    pods = reads.get("the pods of the replicas", _in(names, "api/v1", "pods"), _SELECTOR)
    configuration = reads.get(CONFIGURATION_TITLE, CONFIGURATION_PATH)
    slices = _in(names, "apis/discovery.k8s.io/v1", "endpointslices")
    return InstallFacts(
        names=names,
        version=options.version,
        clocks=clocks,
        definition=reads.get(
            f"CustomResourceDefinition {_DEFINITION}",
            f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{_DEFINITION}",
        ),
        deployment=deployment,
        preview=reads.get(
            f"Deployment {PREVIEW_NAME}", _in(names, "apis/apps/v1", "deployments", PREVIEW_NAME)
        ),
        service=reads.get(
            f"Service {names.service}", _in(names, "api/v1", "services", names.service)
        ),
        endpoints=reads.get(
            f"the endpoints of Service {names.service}",
            slices,
            f"kubernetes.io/service-name={names.service}",
        ),
        lease=reads.get(f"Lease {NAME}", _in(names, "apis/coordination.k8s.io/v1", "leases", NAME)),
        others=tuple(
            reads.get(title, path)
            for title, path in _other_objects(names, self_managed=self_managed)
        ),
        webhook_configurations=tuple(
            reads.get(str(expected.configuration), expected.configuration.path)
            for expected in names.registrations
        ),
        policies={name: _policy(reads, name) for name in (*GUARDS, *ADVISERS)},
        configuration=configuration,
        pods=pods,
        replicas=tuple(
            _replica(api, names, pod.metadata.name) for pod in running_pods(pods.manifest)
        ),
        certificates=inspect(self_managed),
        monitoring=tuple(
            reads.get(f"{kind} {NAME}", _in(names, _MONITORING, f"{kind.lower()}s", NAME))
            for kind in ("PodMonitor", "PrometheusRule")
        ),
        tried=_tried_pods(reads, options.tried_namespace, configuration),
    )


_MONITORING = "apis/monitoring.coreos.com/v1"


def _in(names: InstallNames, group: str, resource: str, name: str = "") -> str:
    """Return the path of an object in the namespace of the installation, or of all of a kind."""
    path = f"/{group}/namespaces/{path_segment(names.namespace)}/{resource}"
    return f"{path}/{path_segment(name)}" if name else path


def _other_objects(names: InstallNames, *, self_managed: bool) -> Iterator[tuple[str, str]]:
    """Yield title and path of each object that need only exist.

    Only replicas that issue their certificates need the rights to write them.
    """
    own = [NAME] if self_managed else []
    yield f"ServiceAccount {NAME}", _in(names, "api/v1", "serviceaccounts", NAME)
    for name in (f"{NAME}-facts", f"{NAME}-events", f"{NAME}-status", *own):
        yield f"ClusterRoleBinding {name}", f"{_RBAC}/clusterrolebindings/{name}"
    for name in (f"{NAME}-status", *own):
        yield f"RoleBinding {name}", _in(names, _RBAC[1:], "rolebindings", name)


class _Reads:
    """Reads objects, and says why one cannot be read."""

    def __init__(self, api: InstallApi) -> None:
        self._api = api

    def get(self, title: str, path: str, selector: str = "") -> Reading:
        """Return an object, or the objects of a kind that have these labels."""
        query = [("labelSelector", selector)] if selector else None
        status, answer = self._api.send("GET", path, query=query)
        name = path.rpartition("/")[2]
        if status == HTTPStatus.NOT_FOUND:
            return Reading(title, lacks_kind=f'"{name}" not found' not in message_of(answer))
        right = right_to_read(path, "list" if selector else "get")
        if obstacle := _obstacle(status, answer, right):
            return Reading(title, None, *obstacle)
        return Reading(title, answer)

    def create(self, namespace: str, pod: Manifest) -> TriedPod:
        """Have the API server create a pod without storing it."""
        path = f"/api/v1/namespaces/{path_segment(namespace)}/pods"
        return TriedPod(*self._api.send("POST", path, pod, "application/json", [_DRY_RUN]))


class _Obstacle(NamedTuple):
    """Why an answer has no object."""

    obstacle: str
    lacks_kind: bool = False
    missing_right: str = ""


def _obstacle(status: int, answer: Manifest, right: str) -> _Obstacle | None:
    """Return why an answer has no object; None if it has. Raise ClusterError for a wrong user."""
    if status == HTTPStatus.OK:
        return None
    if status == HTTPStatus.FORBIDDEN:
        return _Obstacle(f"you lack the right to {right}", missing_right=right)
    text = f"the API server answered {status}: {message_of(answer)}"
    if status == HTTPStatus.UNAUTHORIZED:
        raise ClusterError(text)
    return _Obstacle(text)


def right_to_read(path: str, verb: str) -> str:
    """Return the right for a path, in words: "get leases.coordination.k8s.io in namespace a"."""
    _, root, *parts = path.split("/")
    group = f".{parts.pop(0)}" if root == "apis" else ""
    parts = parts[1:]  # without the version
    namespace = ""
    if parts[0] == "namespaces" and len(parts) > 2:  # noqa: PLR2004 -- a name, and then a kind
        namespace = f" in namespace {parts[1]}"
        parts = parts[2:]
    return f"{verb} {parts[0]}{group}{namespace}"


def read_clocks(api: InstallApi, now: Callable[[], datetime]) -> ClockFacts:
    """Return the time of the API server, and of this machine halfway through the request."""
    before = now()
    date = api.plain(_VERSION_PATH).date
    duration = now() - before
    return ClockFacts(_server_time(date), before + duration / 2, duration / 2)


def _server_time(date: str) -> datetime | None:
    try:
        return parsedate_to_datetime(date).astimezone(UTC)
    except ValueError:
        return None


def _policy(reads: _Reads, name: str) -> PolicyReading:
    kind = "ValidatingAdmissionPolicy"
    return PolicyReading(
        reads.get(f"{kind} {name}", f"{_ADMISSION}/validatingadmissionpolicies/{name}"),
        reads.get(
            f"{kind}Binding {name}", f"{_ADMISSION}/validatingadmissionpolicybindings/{name}"
        ),
    )


def _replica(api: InstallApi, names: InstallNames, pod: str) -> ReplicaReading:
    """Read /readyz of a replica through the API server, which can reach all pods."""
    path = f"{_in(names, 'api/v1', 'pods', pod)}:{_HEALTH_PORT}/proxy/readyz"
    answer = api.plain(path)
    checks = read_readiness(answer.text)
    if checks:
        return ReplicaReading(pod, checks)
    if answer.status == HTTPStatus.FORBIDDEN:
        right = f"get pods/proxy in namespace {names.namespace}"
        return ReplicaReading(pod, (), f"you lack the right to {right}", right)
    return ReplicaReading(
        pod, (), f"the API server answered {answer.status} instead of the replica"
    )


def _tried_pods(reads: _Reads, name: str, configuration: Reading) -> TriedPods | None:
    """Do the dry runs; the first only if the namespace may have the label."""
    if not name:
        return None
    namespace = reads.get(f"namespace {name}", f"/api/v1/namespaces/{path_segment(name)}")
    fabrics = ConfigurationRecord.model_validate(configuration.manifest or {}).spec.fabrics
    fabric = fabrics[0].name if fabrics else ""
    tried = TriedPods(namespace, name, fabric)
    if namespace.is_missing:
        return tried
    may_opt_in = namespace.manifest is None or is_labeled(namespace.manifest)
    opted_in = reads.create(name, tried_pod(fabric, opts_in=True)) if may_opt_in else None
    other = reads.create(name, tried_pod(fabric, opts_in=False))
    return tried._replace(opted_in=opted_in, other=other)
