"""An installation of the manifests, as an API server has it, and the check of it."""

from __future__ import annotations

from copy import deepcopy
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from pathlib import Path
from typing import Any

import yaml

from webhook.admission.expected_registration import expected_registrations
from webhook.config.load import parse_object
from webhook.diagnose.install.answer import InstallCheck, check_install
from webhook.diagnose.install.facts import CertificateFacts, InstallNames, ServedCertificate
from webhook.diagnose.install.reads import InstallOptions, read_installation
from webhook.kube.api import PlainAnswer
from webhook.model.finding import Finding
from webhook.serve.options import DEFAULTS, webhook_configurations
from webhook.text.readiness import ReadinessCheck, readiness_text

Object = dict[str, Any]
_ROOT = Path(__file__).parents[4]
_EXAMPLE = _ROOT / "webhook" / "config" / "examples" / "lab-two-infiniband.yaml"
NOW = datetime(2026, 11, 29, 4, 0, tzinfo=UTC)
PODS = ("webhook-a", "webhook-b")
VERSION = "1.4.2"
BUNDLE = "Q0E="
_RBAC, _ADMISSION = "/apis/rbac.authorization.k8s.io/v1", "/apis/admissionregistration.k8s.io/v1"
_NAMESPACED = "namespaces/rdma-webhook"
#: Kind → the path of all its objects.
_COLLECTIONS = {
    "CustomResourceDefinition": "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
    "Deployment": f"/apis/apps/v1/{_NAMESPACED}/deployments",
    "Service": f"/api/v1/{_NAMESPACED}/services",
    "ServiceAccount": f"/api/v1/{_NAMESPACED}/serviceaccounts",
    "Lease": f"/apis/coordination.k8s.io/v1/{_NAMESPACED}/leases",
    "ClusterRoleBinding": f"{_RBAC}/clusterrolebindings",
    "RoleBinding": f"{_RBAC}/{_NAMESPACED}/rolebindings",
    "MutatingWebhookConfiguration": f"{_ADMISSION}/mutatingwebhookconfigurations",
    "ValidatingWebhookConfiguration": f"{_ADMISSION}/validatingwebhookconfigurations",
    "ValidatingAdmissionPolicy": f"{_ADMISSION}/validatingadmissionpolicies",
    "ValidatingAdmissionPolicyBinding": f"{_ADMISSION}/validatingadmissionpolicybindings",
    "PodMonitor": f"/apis/monitoring.coreos.com/v1/{_NAMESPACED}/podmonitors",
    "PrometheusRule": f"/apis/monitoring.coreos.com/v1/{_NAMESPACED}/prometheusrules",
    "FabricConfiguration": "/apis/rdma.lab/v1alpha1/fabricconfigurations",
}
_PODS = f"/api/v1/{_NAMESPACED}/pods"
_SLICES = f"/apis/discovery.k8s.io/v1/{_NAMESPACED}/endpointslices"


def stamp(moment: datetime) -> str:
    """Write a time as the API server does."""
    return f"{moment:%Y-%m-%dT%H:%M:%SZ}"


def path_of(kind: str, name: str) -> str:
    """Return the path of an object."""
    return f"{_COLLECTIONS[kind]}/{name}"


class Installation:
    """The objects by path, the replicas' answers, and the certificates; a test changes them."""

    def __init__(self) -> None:
        self.objects: dict[str, Object] = {
            path_of(manifest["kind"], manifest["metadata"]["name"]): deepcopy(manifest)
            for manifest in _MANIFESTS
        }
        #: Path → the status of the answer to a request for it.
        self.refused: dict[str, int] = {}
        self.replicas: dict[str, PlainAnswer] = {pod: self.ready() for pod in PODS}
        self.server, self.machine = NOW, NOW
        #: How long the API server takes for the answer that has its time.
        self.duration = timedelta()
        self.certificates = CertificateFacts(
            self_managed=True,
            bundles=dict.fromkeys(map(str, _CONFIGURATIONS), ""),
            served=tuple(
                ServedCertificate(f"10.0.0.{host}:8443", "", True, NOW + timedelta(hours=20))
                for host in (7, 8)
            ),
            ca_not_after=NOW + timedelta(days=300),
        )
        #: What `inspect` was called with.
        self.self_managed: bool | None = None
        self.version = VERSION
        #: What the API server does with the pod of a dry run.
        self.pod_answers: dict[bool, tuple[int, Object]] = {}
        self.created: list[tuple[str, Object]] = []
        self._prepare()

    def _prepare(self) -> None:
        for kind, name in (("Mutating", "zz-rdma-webhook"), ("Validating", "rdma-webhook")):
            registration = self[f"{kind}WebhookConfiguration", name]["webhooks"][0]
            registration["clientConfig"]["caBundle"] = BUNDLE
        self["Deployment", "rdma-webhook"]["status"] = {
            "readyReplicas": 2,
            "updatedReplicas": 2,
        }
        self["CustomResourceDefinition", "fabricconfigurations.rdma.lab"]["status"] = {
            "conditions": [{"type": "Established", "status": "True"}]
        }
        self["Lease", "rdma-webhook"].update(
            spec={"holderIdentity": PODS[0], "renewTime": stamp(NOW)},
        )
        self["Lease", "rdma-webhook"]["metadata"]["managedFields"] = [
            {"manager": "kubectl", "time": stamp(NOW - timedelta(days=9))},
            {"manager": "rdma-webhook", "time": stamp(NOW)},
        ]
        self.objects[_PODS] = {"items": [_pod(name) for name in PODS]}
        self.objects[_SLICES] = {"items": [{"endpoints": [{"conditions": {"ready": True}}] * 2}]}
        self.objects["/api/v1/namespaces/lab"] = {
            "metadata": {"labels": {"rdma.lab/enable": "true"}}
        }
        configuration: Object = yaml.safe_load(_EXAMPLE.read_text(encoding="utf-8"))
        configuration["metadata"]["generation"] = 3
        config = parse_object(configuration, "test").compiled.config_hash
        conditions = [_condition(name) for name in ("Ready", "Valid", "Active", "Called")]
        entry = {"config": config, "generation": 3, "version": VERSION, "seen": stamp(NOW)}
        configuration["status"] = {
            "conditions": conditions,
            "fabricNames": "v100-ib, a100-ib",
            "nodes": 4,
            "problems": 0,
            "replicas": {name: dict(entry) for name in PODS},
        }
        self.objects[path_of("FabricConfiguration", "default")] = configuration

    def __getitem__(self, key: tuple[str, str]) -> Object:
        """Return an object by kind and name."""
        return self.objects[path_of(*key)]

    def delete(self, kind: str, name: str) -> None:
        """Remove an object."""
        del self.objects[path_of(kind, name)]

    def refuse(self, kind: str, name: str, status: int = 403) -> None:
        """Answer requests for an object with an error."""
        self.refused[path_of(kind, name)] = status

    @property
    def configuration(self) -> Object:
        """The FabricConfiguration."""
        return self["FabricConfiguration", "default"]

    @property
    def pods(self) -> list[Object]:
        """The pods of the replicas."""
        pods: list[Object] = self.objects[_PODS]["items"]
        return pods

    @property
    def slices(self) -> Object:
        """The EndpointSlices of the Service."""
        return self.objects[_SLICES]

    @staticmethod
    def ready(*checks: ReadinessCheck) -> PlainAnswer:
        """Return an answer of /readyz, with a guard that works unless there are other checks."""
        listed = checks or (ReadinessCheck("guard", True, "this account may change at most ..."),)
        is_ready = all(check.ready for check in listed)
        return PlainAnswer(200 if is_ready else 503, readiness_text(listed, ready=is_ready), "")

    # The API server.

    def send(
        self,
        method: str,
        path: str,
        body: Object | None = None,
        content_type: str = "",
        query: list[tuple[str, str]] | None = None,
    ) -> tuple[int, Object]:
        """Answer a read, or a dry run of a pod."""
        if status := self.refused.get(path):
            return status, {"message": "no"}
        if method == "POST":
            assert (content_type, query) == ("application/json", [("dryRun", "All")])
            assert body is not None
            return self._create(path, body)
        if path not in self.objects:
            name = path.rpartition("/")[2]
            return 404, {"message": f'x "{name}" not found'}
        return 200, self.objects[path]

    def _create(self, path: str, pod: Object) -> tuple[int, Object]:
        self.created.append((path, pod))
        opts_in = bool(pod["metadata"]["annotations"])
        if opts_in in self.pod_answers:
            return self.pod_answers[opts_in]
        answer = deepcopy(pod)
        if opts_in:
            answer["metadata"]["annotations"]["rdma.lab/status"] = STATUS
        return 201, answer

    def plain(self, path: str) -> PlainAnswer:
        """Answer a read of any kind."""
        if path == "/version":
            return PlainAnswer(200, "{}", self.date)
        pod = path.removeprefix(f"{_PODS}/").removesuffix(":8080/proxy/readyz")
        return self.replicas[pod]

    @property
    def date(self) -> str:
        """The header Date."""
        return format_datetime(self.server, usegmt=True)

    # The check.

    def check(self, tried_namespace: str = "") -> InstallCheck:
        """Check the installation."""
        options = InstallOptions(NAMES, self.version, tried_namespace)

        def inspect(self_managed: bool) -> CertificateFacts:
            self.self_managed = self_managed
            return self.certificates

        half = self.duration / 2
        times = iter((self.machine - half, self.machine + half))
        facts = read_installation(self, options, inspect, lambda: next(times))
        return check_install(facts)

    def findings(self, tried_namespace: str = "") -> list[Finding]:
        """Return the findings that are not ok."""
        findings = self.check(tried_namespace).findings
        return [finding for finding in findings if finding.level != "ok"]

    def texts(self, part: str, tried_namespace: str = "") -> list[str]:
        """Return the texts of a part."""
        parts = {group.title: group.findings for group in self.check(tried_namespace).parts}
        return [finding.text for finding in parts.get(part, ())]


STATUS = (
    '{"rdma":"yes","because":"Equipped","fabric":"v100-ib","applied":["env"],'
    '"config":"0123456789ab"}'
)
_CONFIGURATIONS = webhook_configurations(
    DEFAULTS.webhook_configuration, DEFAULTS.validating_webhook_configuration
)
NAMES = InstallNames(
    "rdma-webhook",
    "rdma-webhook",
    expected_registrations(_CONFIGURATIONS[0], _CONFIGURATIONS[1], "rdma-webhook", "rdma-webhook"),
)


def _manifests() -> list[Object]:
    folders = ("base", "base/admission", "crd", "monitoring", "overlays/self-managed")
    files = [file for folder in folders for file in (_ROOT / "manifests" / folder).glob("*.yaml")]
    texts = (file.read_text("utf-8") for file in files)
    documents = (manifest for text in texts for manifest in yaml.safe_load_all(text))
    return [manifest for manifest in documents if manifest["kind"] in _COLLECTIONS]


_MANIFESTS = _manifests()


def _pod(name: str) -> Object:
    ready = [{"type": "Ready", "status": "True"}]
    return {"metadata": {"name": name}, "status": {"phase": "Running", "conditions": ready}}


def _condition(name: str) -> Object:
    return {
        "type": name,
        "status": "True",
        "reason": name,
        "message": "Fine.",
        "observedGeneration": 3,
    }
