"""Previews in a Deployment of their own: few rights, and apart from admission."""

from __future__ import annotations

import json
from typing import Any

import yaml

from tests.unit.test_manifests import (
    CONTAINER,
    DEPLOYMENT,
    GRACEFUL_SECONDS,
    POD,
    documents,
    parsed,
)
from webhook.kube.watched_resources import CONFIGURATIONS
from webhook.serve.options import ServeOptions

FOLDER = "components/separate-preview"
NAME = "rdma-webhook-preview"
(KUSTOMIZATION,) = documents(f"{FOLDER}/kustomization.yaml")
(PREVIEW,) = documents(f"{FOLDER}/deployment.yaml")
PREVIEW_POD: dict[str, Any] = PREVIEW["spec"]["template"]["spec"]
PREVIEW_CONTAINER: dict[str, Any] = PREVIEW_POD["containers"][0]


def patched(kind: str) -> dict[str, Any]:
    """Return path -> value of the changes to an object of the base; None where it is removed."""
    (patch,) = (
        patch["patch"] for patch in KUSTOMIZATION["patches"] if patch["target"]["kind"] == kind
    )
    operations = [change for change in yaml.safe_load(patch) if change["op"] != "test"]
    return {change["path"]: change.get("value") for change in operations}


def test_its_account_may_only_read_the_fabrics() -> None:
    """One rule, for the kind that the code watches; the token is the only thing mounted."""
    account, (role, binding) = (
        documents(f"{FOLDER}/serviceaccount.yaml")[0],
        documents(f"{FOLDER}/rbac.yaml"),
    )
    assert role["rules"] == [
        {
            "apiGroups": [CONFIGURATIONS.group],
            "resources": [CONFIGURATIONS.resource],
            "verbs": ["list", "watch"],
        }
    ]
    assert binding["roleRef"]["name"] == role["metadata"]["name"]
    (subject,) = binding["subjects"]
    assert subject["name"] == account["metadata"]["name"] == PREVIEW_POD["serviceAccountName"]
    assert account["automountServiceAccountToken"] is False
    assert PREVIEW_POD["automountServiceAccountToken"] is True
    assert not {"volumes", "env", "envFrom", "volumeMounts"} & {*PREVIEW_POD, *PREVIEW_CONTAINER}


def test_it_serves_previews_and_the_replicas_do_not() -> None:
    """By the arguments, which the server understands, and by the ports.

    A Prometheus without the operator scrapes each port `health` (docs/installation.md), and the
    alerts would take a pod of previews for a replica.
    """
    arguments = parsed(*PREVIEW_CONTAINER["args"])
    assert (arguments.preview, arguments.config) == ("only", None)
    (added,) = (value for path, value in patched("Deployment").items() if path.endswith("/args/-"))
    assert parsed(*CONTAINER["args"], added).preview == "off"
    removed = "/spec/template/spec/containers/0/ports/1"
    assert patched("Deployment")[removed] is None
    assert CONTAINER["ports"][1]["name"] == "preview"
    ports = {port["name"]: port["containerPort"] for port in PREVIEW_CONTAINER["ports"]}
    options = ServeOptions()
    assert ports == {"preview": options.preview_port, "probes": options.health_port}


def test_nothing_that_selects_replicas_selects_its_pods() -> None:
    """Their labels differ: the API server sends it no pod, and no drain waits for it."""
    labels = PREVIEW["spec"]["template"]["metadata"]["labels"]
    (service,) = documents(f"{FOLDER}/service.yaml")
    (policy,) = documents(f"{FOLDER}/networkpolicy.yaml")
    assert labels == PREVIEW["spec"]["selector"]["matchLabels"]
    assert labels == service["spec"]["selector"] == policy["spec"]["podSelector"]["matchLabels"]
    assert labels != DEPLOYMENT["spec"]["selector"]["matchLabels"]


def test_its_service_takes_the_place_of_the_port() -> None:
    """The Role of people names it, by the same port and number as before."""
    (service,) = documents(f"{FOLDER}/service.yaml")
    (base,) = documents("base/service.yaml")
    assert service["spec"]["ports"] == [base["spec"]["ports"][1]]
    assert patched("Service") == {"/spec/ports/1": None}
    (role,) = documents("base/preview-role.yaml")
    (names,) = patched("Role").values()
    assert names == [
        name.replace("rdma-webhook", NAME) for name in role["rules"][0]["resourceNames"]
    ]
    assert service["metadata"]["name"] == NAME


def test_its_traffic_is_that_of_previews() -> None:
    """In: the port that the replicas close. Out: as the replicas, but not to other replicas."""
    (policy,) = documents(f"{FOLDER}/networkpolicy.yaml")
    (base,) = documents("base/networkpolicy.yaml")
    assert patched("NetworkPolicy") == {"/spec/ingress/0/ports/1": None}
    assert policy["spec"]["ingress"] == [{"ports": [base["spec"]["ingress"][0]["ports"][1]]}]
    api_server, _, names = base["spec"]["egress"]
    assert policy["spec"]["egress"] == [api_server, names]


def test_its_pods_are_as_confined_as_replicas() -> None:
    """The same image, user, probes and limits of memory, and time for requests to end."""
    assert PREVIEW_POD["securityContext"] == POD["securityContext"]
    for field in ("image", "securityContext"):
        assert PREVIEW_CONTAINER[field] == CONTAINER[field]
    for field in ("startupProbe", "livenessProbe", "readinessProbe"):
        assert json.dumps(PREVIEW_CONTAINER[field]).replace("probes", "health") == json.dumps(
            CONTAINER[field]
        )
    assert PREVIEW_CONTAINER["resources"]["limits"] == CONTAINER["resources"]["limits"]
    drain = parsed(*PREVIEW_CONTAINER["args"]).drain_seconds
    assert PREVIEW_POD["terminationGracePeriodSeconds"] >= drain + GRACEFUL_SECONDS + 5
