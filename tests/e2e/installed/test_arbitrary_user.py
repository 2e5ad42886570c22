"""As OpenShift runs it: as a user from its namespace's range, of whom no file of the image knows.

The patch is the one of docs/compatibility.md. OpenShift's admission then sets the user, and does
not run here, so the tests set what it would.
"""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
import yaml

from tests.cluster.images import ROOT
from tests.cluster.install import NAME, Webhook, end_replicas, install
from tests.e2e.documents import Document
from tests.e2e.installed.space import Space

USER = 1000680000
_POD = "/spec/template/spec/securityContext"
#: From the ranges in the annotations that OpenShift writes on each namespace.
ASSIGNED = [
    {"op": "add", "path": f"{_POD}/{name}", "value": USER} for name in ("runAsUser", "fsGroup")
]
#: For Python, since the image has no shell and no other program.
_READ = "print(open('/proc/1/status').read(), open('/etc/passwd').read())"
_PREVIEW = f"/api/v1/namespaces/{NAME}/services/https:{NAME}:preview/proxy/preview?output=text"


@pytest.fixture(scope="module")
def patched(webhook: Webhook) -> Iterator[Webhook]:
    """Install with the patch of the page, and as shipped afterwards."""
    _replace(webhook, [_patch() + ASSIGNED])
    yield webhook
    _replace(webhook, [])


def _patch() -> list[Document]:
    page = (ROOT / "docs/compatibility.md").read_text(encoding="utf-8")
    block = page.partition("<!-- openshift -->\n```yaml\n")[2].partition("```")[0]
    (patch,) = yaml.safe_load(block)["patches"]
    assert patch["target"] == {"kind": "Deployment", "name": f"{NAME}.*"}
    operations: list[Document] = yaml.safe_load(patch["patch"])
    return operations


def _replace(webhook: Webhook, patches: list[list[Document]]) -> None:
    """Replace the installation; there are no calls, so nothing has to wait for a drain."""
    end_replicas(webhook.cluster)
    install(webhook.cluster, webhook.fabrics, patches=patches)


def test_the_patch_leaves_the_user_to_the_cluster() -> None:
    """What it removes is what restricted-v2 would reject; the rest of the confinement stays."""
    removed = [f"{_POD}/{name}" for name in ("runAsUser", "runAsGroup", "fsGroup")]
    assert _patch() == [{"op": "remove", "path": path} for path in removed]


def test_replicas_run_as_a_user_without_a_name(patched: Webhook) -> None:
    """Each process is ready with that user, group 0 and no entry in /etc/passwd."""
    replicas = patched.replicas()
    assert len(replicas) == 2
    for replica in replicas:
        status = patched.kubectl("exec", replica, "--", "/app/bin/python", "-c", _READ)
        fields = dict(line.split(":\t", 1) for line in status.splitlines() if ":\t" in line)
        assert fields["Uid"].split() == [str(USER)] * 4
        assert fields["Gid"].split() == ["0"] * 4
        assert f":{USER}:" not in status
        assert patched.ask(replica, "/readyz").endswith("\nready\n")


def test_pods_and_previews_are_decided(patched: Webhook, space: Space) -> None:
    """The replicas decide on a pod, and start the process that computes previews."""
    document = space.pod("asks", "nvidia.com/v100")
    assert "rdma.lab/status" in space.proposed(document)["metadata"]["annotations"]
    document["metadata"]["namespace"] = space.name
    create = ("create", "--raw", _PREVIEW, "--filename=-")
    printed = patched.kubectl(*create, input=json.dumps(document))
    assert printed.splitlines()[-1] == "1 pod: 1 equipped for RDMA"
