"""Each object of the manifests is missed, and each webhook configuration is compared."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.diagnose.install.installation import Installation, path_of
from webhook.model.finding import Finding
from webhook.model.names import uncapitalized

APPLY = (
    "Apply the webhook's manifests again (kubectl apply -k or helm upgrade; see "
    "docs/installation.md)."
)
RESTORE = (
    f"{APPLY} If that does not correct the webhook configuration, delete it, and apply the "
    "manifests once more."
)
DEFINITION = "CustomResourceDefinition fabricconfigurations.rdma.lab"
MUTATING = "MutatingWebhookConfiguration zz-rdma-webhook"
SERVICE = "Service rdma-webhook in namespace rdma-webhook"


def test_all_is_well(installation: Installation) -> None:
    """Every finding on an installation of the manifests is ok, and names its objects."""
    assert installation.findings("lab") == []
    assert installation.texts("objects") == [
        f"{DEFINITION} serves v1alpha1",
        "Deployment rdma-webhook: 2 of 2 replicas ready",
        "Service rdma-webhook has 2 ready endpoints",
        f"{MUTATING} selects pods and calls /mutate of {SERVICE}",
        (
            "ValidatingWebhookConfiguration rdma-webhook selects FabricConfigurations and calls "
            f"/validate of {SERVICE}"
        ),
        (
            "Lease rdma-webhook, ServiceAccount rdma-webhook, ClusterRoleBinding "
            "rdma-webhook-facts, ClusterRoleBinding rdma-webhook-events, ClusterRoleBinding "
            "rdma-webhook-status, ClusterRoleBinding rdma-webhook, RoleBinding "
            "rdma-webhook-status and RoleBinding rdma-webhook exist"
        ),
    ]


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        ("Deployment", "rdma-webhook"),
        ("Service", "rdma-webhook"),
        ("Lease", "rdma-webhook"),
        ("ServiceAccount", "rdma-webhook"),
        ("ClusterRoleBinding", "rdma-webhook-facts"),
        ("ClusterRoleBinding", "rdma-webhook-events"),
        ("ClusterRoleBinding", "rdma-webhook-status"),
        ("ClusterRoleBinding", "rdma-webhook"),
        ("RoleBinding", "rdma-webhook-status"),
        ("RoleBinding", "rdma-webhook"),
    ],
)
def test_a_missing_object(installation: Installation, kind: str, name: str) -> None:
    """It is an error, and the only one; the manifests restore the object."""
    installation.delete(kind, name)
    text = f"{kind} {name} does not exist"
    assert installation.findings() == [Finding("error", "ObjectMissing", text, APPLY)]
    assert not [line for line in installation.texts("objects") if f" {kind} {name}," in f" {line}"]


@pytest.mark.parametrize(
    ("kind", "name", "right"),
    [
        ("Service", "rdma-webhook", "get services in namespace rdma-webhook"),
        ("Lease", "rdma-webhook", "get leases.coordination.k8s.io in namespace rdma-webhook"),
        (
            "CustomResourceDefinition",
            "fabricconfigurations.rdma.lab",
            "get customresourcedefinitions.apiextensions.k8s.io",
        ),
    ],
)
def test_a_missing_right(installation: Installation, kind: str, name: str, right: str) -> None:
    """The finding names the right; nothing is said about the object."""
    installation.refuse(kind, name)
    text = f"{kind} {name}: not checked, since you lack the right to {right}"
    remedy = f"Ask for the right to {right}, or have an administrator run the command."
    assert installation.findings() == [Finding("unsure", "NotChecked", text, remedy)]


def previews(installation: Installation, desired: int, ready: int) -> None:
    """Add the Deployment of previews."""
    installation.objects[path_of("Deployment", "rdma-webhook-preview")] = {
        "spec": {"replicas": desired},
        "status": {"readyReplicas": ready},
    }


@pytest.mark.parametrize("ready", [0, 1])
def test_previews_that_are_not_ready(installation: Installation, ready: int) -> None:
    """It is a warning, since no pod waits for a preview."""
    previews(installation, 2, ready)
    remedy = (
        "Find the reason with `kubectl -n rdma-webhook describe pods --show-events`, and with "
        "`kubectl -n rdma-webhook logs deployment/rdma-webhook-preview`."
    )
    text = f"Deployment rdma-webhook-preview: {ready} of 2 pods ready"
    assert installation.findings() == [Finding("warning", "PreviewUnavailable", text, remedy)]


def test_separate_previews(installation: Installation) -> None:
    """The replicas then have no port for them, and nothing is wrong; nor is it with none."""
    for port in ("ports", "args"):
        container = installation["Deployment", "rdma-webhook"]["spec"]["template"]["spec"]
        container["containers"][0].pop(port)
    del installation["Service", "rdma-webhook"]["spec"]["ports"][1]
    previews(installation, 1, 1)
    assert installation.findings() == []
    text = "Deployment rdma-webhook-preview: 1 of 1 pod ready"
    assert installation.texts("objects")[2] == text
    previews(installation, 0, 0)
    assert installation.findings() == []
    assert "rdma-webhook-preview" not in str(installation.texts("objects"))
    installation.refuse("Deployment", "rdma-webhook-preview")
    assert installation.findings() == []


def test_a_missing_definition(installation: Installation) -> None:
    """The remedy is the command for the definition, which the other manifests do not contain."""
    installation.delete("CustomResourceDefinition", "fabricconfigurations.rdma.lab")
    remedy = "Apply it (kubectl apply -k manifests/crd or helm upgrade), and then your fabrics."
    assert installation.findings() == [
        Finding("error", "ObjectMissing", f"{DEFINITION} does not exist", remedy)
    ]


def _drop_version(definition: dict[str, Any]) -> None:
    definition["spec"]["versions"][0]["name"] = "v1alpha2"


def _unserve(definition: dict[str, Any]) -> None:
    definition["spec"]["versions"][0]["served"] = False


def _establish_not(definition: dict[str, Any]) -> None:
    definition["status"]["conditions"][0]["status"] = "False"


@pytest.mark.parametrize("change", [_drop_version, _unserve, _establish_not])
def test_a_definition_that_is_not_served(installation: Installation, change: Any) -> None:
    """The version is not listed, not served, or the names are not accepted."""
    change(installation["CustomResourceDefinition", "fabricconfigurations.rdma.lab"])
    text = f"{DEFINITION} does not serve v1alpha1"
    remedy = (
        "Apply the CustomResourceDefinition that belongs to the version of this program (kubectl "
        "apply -k manifests/crd or helm upgrade)."
    )
    assert installation.findings() == [Finding("error", "DefinitionNotServed", text, remedy)]


@pytest.mark.parametrize(
    ("desired", "ready", "level", "text"),
    [
        (2, 1, "warning", "Deployment rdma-webhook: 1 of 2 replicas ready"),
        (2, 0, "error", "Deployment rdma-webhook: 0 of 2 replicas ready"),
        (1, 0, "error", "Deployment rdma-webhook: 0 of 1 replica ready"),
    ],
)
def test_replicas_that_are_not_ready(
    installation: Installation, desired: int, ready: int, level: Any, text: str
) -> None:
    """Some are a warning, since the others answer; all are an error."""
    installation["Deployment", "rdma-webhook"]["spec"]["replicas"] = desired
    installation["Deployment", "rdma-webhook"]["status"]["readyReplicas"] = ready
    remedy = (
        "Find the reason with `kubectl -n rdma-webhook describe pods --show-events`, and with "
        "`kubectl -n rdma-webhook logs deployment/rdma-webhook`."
    )
    assert installation.findings() == [Finding(level, "ReplicasUnavailable", text, remedy)]


def _wait_for_image(pod: dict[str, Any]) -> None:
    waiting = {"waiting": {"reason": "ImagePullBackOff", "message": "x"}}
    pod["status"]["containerStatuses"] = [{"state": {"running": {}}}, {"state": waiting}]


def test_a_replica_that_waits_for_its_image(installation: Installation) -> None:
    """The reason is given, since kubectl shows the events of several pods only on request."""
    installation["Deployment", "rdma-webhook"]["status"]["readyReplicas"] = 1
    _wait_for_image(installation.pods[1])
    (finding,) = installation.findings()
    assert (finding.code, finding.text) == (
        "ReplicasUnavailable",
        "Deployment rdma-webhook: 1 of 2 replicas ready; webhook-b waits: ImagePullBackOff",
    )


_ROLLOUT_REMEDY = (
    "Wait for the rollout to complete: `kubectl -n rdma-webhook rollout status "
    "deployment/rdma-webhook`. If it does not complete, find the reason with `kubectl -n "
    "rdma-webhook describe pods --show-events`."
)


def test_an_incomplete_rollout(installation: Installation) -> None:
    """The replicas from before the change go on, so all are ready."""
    installation["Deployment", "rdma-webhook"]["status"]["updatedReplicas"] = 1
    text = "Deployment rdma-webhook: 2 of 2 replicas ready, but 1 of 2 updated"
    finding = Finding("warning", "RolloutIncomplete", text, _ROLLOUT_REMEDY)
    assert installation.findings() == [finding]


def test_a_rollout_that_cannot_end(installation: Installation) -> None:
    """A new replica waits for its image, say, while the others are ready."""
    installation.pods.append({"metadata": {"name": "webhook-c"}, "status": {"phase": "Pending"}})
    _wait_for_image(installation.pods[2])
    text = "Deployment rdma-webhook: 2 of 2 replicas ready; webhook-c waits: ImagePullBackOff"
    finding = Finding("warning", "RolloutIncomplete", text, _ROLLOUT_REMEDY)
    assert installation.findings() == [finding]


@pytest.mark.parametrize("status", [{}, {"readyReplicas": 2}])
def test_a_deployment_without_replicas(installation: Installation, status: dict[str, Any]) -> None:
    """Its Service has no endpoints either, but that has the same cause, and is not reported.

    The status may still count the replicas from before.
    """
    installation["Deployment", "rdma-webhook"]["spec"]["replicas"] = 0
    installation["Deployment", "rdma-webhook"]["status"] = status
    installation.slices["items"] = []
    text = "Deployment rdma-webhook has no replicas: it is scaled to 0"
    remedy = "Run `kubectl -n rdma-webhook scale deployment rdma-webhook --replicas=2`."
    assert installation.findings() == [Finding("error", "ReplicasUnavailable", text, remedy)]


@pytest.mark.parametrize("slices", [[], [{"endpoints": [{"conditions": {"ready": False}}]}]])
def test_a_service_that_selects_nothing(installation: Installation, slices: Any) -> None:
    """Replicas are ready, but no endpoint is."""
    installation.slices["items"] = slices
    text = "Service rdma-webhook has no ready endpoints, although replicas are ready"
    remedy = (
        "Compare the selector of the Service with the labels of the replicas' pods. If they do "
        "not match, apply the webhook's manifests again (kubectl apply -k or helm upgrade; see "
        "docs/installation.md)."
    )
    assert installation.findings() == [Finding("error", "NoEndpoints", text, remedy)]


def test_an_endpoint_of_unknown_readiness(installation: Installation) -> None:
    """It counts, as for kube-proxy."""
    installation.slices["items"] = [{"endpoints": [{}]}]
    assert "Service rdma-webhook has 1 ready endpoint" in installation.texts("objects")


def test_endpoints_that_cannot_be_read(installation: Installation) -> None:
    """The Service alone does not show whether it has endpoints."""
    installation.refused["/apis/discovery.k8s.io/v1/namespaces/rdma-webhook/endpointslices"] = 403
    right = "list endpointslices.discovery.k8s.io in namespace rdma-webhook"
    (finding,) = installation.findings()
    assert finding.text == (
        f"the endpoints of Service rdma-webhook: not checked, since you lack the right to {right}"
    )


def test_a_missing_webhook_configuration(installation: Installation) -> None:
    """The condition Called has the same code and sentence."""
    installation.delete("MutatingWebhookConfiguration", "zz-rdma-webhook")
    text = f"{MUTATING} does not exist, so the API server does not send pods to the webhook"
    assert installation.findings() == [Finding("error", "NoWebhookConfiguration", text, APPLY)]


def test_a_webhook_configuration_that_cannot_be_read(installation: Installation) -> None:
    """It is neither missing nor right."""
    installation.refuse("MutatingWebhookConfiguration", "zz-rdma-webhook")
    (finding,) = installation.findings()
    assert (finding.level, finding.code) == ("unsure", "NotChecked")
    assert finding.text.startswith(f"{MUTATING}: not checked")


def test_a_webhook_configuration_with_mistakes(installation: Installation) -> None:
    """Each mistake is a finding whose remedy undoes it, and there is no line that it is right."""
    webhook = installation["MutatingWebhookConfiguration", "zz-rdma-webhook"]["webhooks"][0]
    webhook["rules"] = []
    webhook["matchConditions"] = []
    webhook["clientConfig"]["service"]["name"] = "other"
    findings = installation.findings()
    assert [(finding.level, finding.code, finding.remedy) for finding in findings] == [
        ("error", code, RESTORE) for code in ("SelectsTooLittle", "SelectsTooMuch", "OtherService")
    ]
    assert findings[0].text == f"{MUTATING} has no rule for the creation of pods"
    assert not [text for text in installation.texts("objects") if "selects pods and" in text]


@pytest.mark.parametrize(
    ("kind", "name", "effect", "remedy"),
    [
        (
            "Mutating",
            "zz-rdma-webhook",
            "pods that opted in are created without RDMA",
            (
                "remove components/fail-open from the kustomization, or set failOpen to false in "
                "the chart's values."
            ),
        ),
        (
            "Validating",
            "rdma-webhook",
            "changes to fabrics are not checked",
            uncapitalized(APPLY),
        ),
    ],
)
def test_fail_open(
    installation: Installation, kind: str, name: str, effect: str, remedy: str
) -> None:
    """`failurePolicy: Ignore` is a choice, so it is a fact; only that for pods is a setting."""
    installation[f"{kind}WebhookConfiguration", name]["webhooks"][0]["failurePolicy"] = "Ignore"
    (finding,) = installation.findings()
    assert (finding.level, finding.code) == ("info", "FailOpen")
    assert finding.text == (
        f"{kind}WebhookConfiguration {name} has failurePolicy Ignore: while no replica answers, "
        f"{effect}"
    )
    assert finding.remedy == f"No action is needed if that is intended. Otherwise, {remedy}"


def test_rights_that_are_missing_for_several_objects(installation: Installation) -> None:
    """Objects for which the same right is missing share a finding; a missing object has its own."""
    for part in ("facts", "events"):
        installation.refuse("ClusterRoleBinding", f"rdma-webhook-{part}")
    installation.delete("ServiceAccount", "rdma-webhook")
    installation.refuse("RoleBinding", "rdma-webhook-status", 500)
    rights = "get clusterrolebindings.rbac.authorization.k8s.io"
    assert [finding.text for finding in installation.findings()] == [
        "ServiceAccount rdma-webhook does not exist",
        (
            "ClusterRoleBinding rdma-webhook-facts and ClusterRoleBinding rdma-webhook-events: not "
            f"checked, since you lack the right to {rights}"
        ),
        "RoleBinding rdma-webhook-status: not checked, since the API server answered 500: no",
    ]
