"""`kubectl apply -k` of the shipped manifests installs a webhook that the API server calls."""

from __future__ import annotations

import json
from base64 import b64decode
from pathlib import Path

import pytest
import yaml

from tests.cluster.install import (
    CONFIGURATION,
    DEPLOYMENT,
    NAME,
    VALIDATION,
    Webhook,
    changed_by_apply,
    site,
)
from tests.e2e.installed.calls import answers, settled_calls
from tests.e2e.installed.space import Space
from tests.faults.replicas import settled
from tests.waiting import until

#: The kinds of the objects that a renamed installation needs to start its pods.
RENAMED = ("ServiceAccount", "Deployment")


def test_two_replicas_run_the_image_of_this_checkout(webhook: Webhook) -> None:
    """The Deployment is available, with the image built from the Dockerfile or the given one."""
    webhook.kubectl("rollout", "status", DEPLOYMENT, "--timeout=300s")
    deployment = json.loads(webhook.kubectl("get", DEPLOYMENT, "--output=json"))
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    assert container["image"] == webhook.image
    status = deployment["status"]
    assert [status["replicas"], status["updatedReplicas"], status["availableReplicas"]] == [2, 2, 2]
    allowed = "--output=jsonpath={.status.disruptionsAllowed}"
    until(lambda: webhook.kubectl("get", "poddisruptionbudget", NAME, allowed) == "1")
    for replica in webhook.replicas():
        assert webhook.ask(replica, "/readyz").endswith("\nready\n")


def _python(webhook: Webhook, replica: str, program: str) -> str:
    """Run a program in a replica, whose image has no shell; return its output, or its error."""
    return webhook.kubectl("exec", replica, "--", "/app/bin/python", "-c", program, check=False)


def test_replicas_have_no_rights_on_their_node(webhook: Webhook) -> None:
    """The process is not root, has and gains no capabilities, is confined, and writes nothing."""
    replica = webhook.replicas()[0]
    status = _python(webhook, replica, "print(open('/proc/1/status').read(), end='')")
    fields = dict(line.split(":\t", 1) for line in status.splitlines())
    assert fields["Uid"].split() == ["65532"] * 4
    assert {int(fields[name], 16) for name in ("CapEff", "CapPrm", "CapBnd")} == {0}
    assert (fields["NoNewPrivs"], fields["Seccomp"]) == ("1", "2")
    for path in ("/x", "/tmp/x"):
        assert "Read-only file system" in _python(webhook, replica, f"open('{path}', 'w')")


def test_the_process_published_its_own_ca(webhook: Webhook) -> None:
    """The CA in `caBundle` is the Secret's, and no client that applied manifests wrote it."""
    for configuration in (CONFIGURATION, VALIDATION):
        _published(webhook, configuration)


def _published(webhook: Webhook, name: str) -> None:
    text = webhook.kubectl("get", name, "--output=json", "--show-managed-fields")
    configuration = json.loads(text)
    client = configuration["webhooks"][0]["clientConfig"]
    secret = json.loads(webhook.kubectl("get", "secret", f"{NAME}-ca", "--output=json"))
    assert secret["type"] == "Opaque"
    assert client["caBundle"] == secret["data"]["ca.crt"]
    assert b64decode(client["caBundle"]).startswith(b"-----BEGIN CERTIFICATE-----")
    assert "url" not in client
    owners = [
        entry["manager"]
        for entry in configuration["metadata"]["managedFields"]
        if '"f:caBundle"' in json.dumps(entry)
    ]
    assert owners == [NAME]


def test_nothing_is_read_all_the_time(webhook: Webhook) -> None:
    """The rights of the manifests are enough to watch the Secret and both configurations."""
    replicas = len(webhook.replicas())
    until(lambda: webhook.counted("rdma_webhook_certificate_watched")[()] == replicas)


def test_the_api_server_calls_it_through_its_service(webhook: Webhook, space: Space) -> None:
    """A pod that opts in is counted by the API server, answered with 200, and by a replica."""
    before, codes = settled_calls(webhook), answers(webhook)
    proposed = space.proposed(space.pod("asks", "nvidia.com/v100"))
    assert proposed["spec"]["containers"][0]["resources"]["limits"]["rdma/rdma_v100"] == "1"
    after = settled_calls(webhook)
    assert after.api_server - before.api_server == after.ours - before.ours > 0
    new = answers(webhook) - codes
    assert set(new) == {("200", "false")}


def test_applying_again_changes_nothing(webhook: Webhook) -> None:
    """Kubectl reports no change, since the manifests are written as the API server stores them.

    No generation changes, no replica restarts, and `caBundle` stays.
    """
    bundle = "--output=jsonpath={.webhooks[0].clientConfig.caBundle}"
    before = webhook.replicas(), webhook.kubectl("get", CONFIGURATION, bundle)
    with site(webhook.image) as folder:
        stored = _generations(webhook.cluster.kubectl("get", "-k", str(folder), "--output=json"))
        assert changed_by_apply(webhook.cluster) == []
        now = webhook.cluster.kubectl("get", "-k", str(folder), "--output=json")
    assert _generations(now) == stored
    assert (webhook.replicas(), webhook.kubectl("get", CONFIGURATION, bundle)) == before


def _generations(text: str) -> dict[tuple[str, str], int]:
    """Return each object's generation, 0 if it has none."""
    return {
        (document["kind"], document["metadata"]["name"]): document["metadata"].get("generation", 0)
        for document in json.loads(text)["items"]
    }


def test_a_name_prefix_is_refused_with_a_remedy(webhook: Webhook, tmp_path: Path) -> None:
    """No guard would match the renamed account: its pod ends, and shows what to change."""
    with site(webhook.image) as folder:
        file = folder / "kustomization.yaml"
        renamed = {**yaml.safe_load(file.read_text()), "namePrefix": "team-"}
        file.write_text(yaml.safe_dump(renamed))
        documents = yaml.safe_load_all(webhook.cluster.kubectl("kustomize", str(folder)))
    ours = [document for document in documents if document["kind"] in RENAMED]
    assert {document["metadata"]["name"] for document in ours} == {f"team-{NAME}"}
    file = tmp_path / "renamed.yaml"
    file.write_text(yaml.safe_dump_all(ours))
    webhook.cluster.kubectl("apply", "--filename", str(file))
    try:
        until(lambda: _endings(webhook))
        message = _endings(webhook)[0]
    finally:
        webhook.cluster.kubectl("delete", "--filename", str(file))
        settled(webhook)
    assert message.startswith(
        f"rdma-webhook: error: the ServiceAccount of this pod is team-{NAME}, but the policies that"
        f" guard it match only the name {NAME}; remove namePrefix and nameSuffix "
    )


def _endings(webhook: Webhook) -> list[str]:
    """Return what `kubectl describe pod` shows of containers of the renamed pods that ended."""
    pods = json.loads(webhook.kubectl("get", "pods", "--output=json"))["items"]
    states = [
        status.get(state, {}).get("terminated")
        for pod in pods
        if pod["metadata"]["name"].startswith("team-")
        for status in pod["status"].get("containerStatuses") or ()
        for state in ("state", "lastState")
    ]
    return [state["message"] for state in states if state]


@pytest.mark.parametrize("level", ["warning", "error"])
def test_no_problem_is_logged(webhook: Webhook, level: str) -> None:
    """No replica has logged an error, or a warning other than about its waits at start."""
    expected = {"certificate not trusted yet", "no fabrics"} if level == "warning" else set()
    for replica in webhook.replicas():
        lines = [json.loads(line) for line in webhook.kubectl("logs", replica).splitlines()]
        assert {line["msg"] for line in lines if line["level"] == level} <= expected
    assert webhook.counted("rdma_webhook_internal_errors_total")[()] == 0
