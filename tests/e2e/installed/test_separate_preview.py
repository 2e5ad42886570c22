"""Previews in a Deployment of their own: its pods answer, and the replicas serve none."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from tests.cluster.install import NAME, Webhook, end_replicas, install
from tests.e2e.installed.space import Space
from tests.e2e.installed.test_check_install import check, problems
from tests.e2e.rights import is_allowed, service_account, wait_for_right
from tests.waiting import until
from webhook.text.readiness import read_readiness

PREVIEW = f"{NAME}-preview"
_SERVICE = f"/api/v1/namespaces/{NAME}/services/https:{PREVIEW}:preview/proxy"
#: For Python, since the image has no shell and no other program: the ports at which it listens.
_LISTENING = """
import json
rows = [line.split() for name in ("tcp", "tcp6") for line in open(f"/proc/net/{name}")]
print(json.dumps(sorted({int(row[1].rpartition(":")[2], 16) for row in rows if row[3] == "0A"})))
"""
#: What this component adds; the next `kubectl apply` does not remove it.
_ADDED = (
    f"deployment/{PREVIEW}",
    f"service/{PREVIEW}",
    f"networkpolicy/{PREVIEW}",
    f"serviceaccount/{PREVIEW}",
    f"clusterrole/{PREVIEW}",
    f"clusterrolebinding/{PREVIEW}",
)


@pytest.fixture(scope="module")
def separate(webhook: Webhook) -> Iterator[Webhook]:
    """Install with the component, and as shipped afterwards; nothing has to wait for a drain."""
    end_replicas(webhook.cluster)
    install(webhook.cluster, webhook.fabrics, components=["separate-preview"])
    yield webhook
    webhook.kubectl("delete", *_ADDED)
    end_replicas(webhook.cluster)
    install(webhook.cluster, webhook.fabrics)


@pytest.fixture(scope="module")
def pod(separate: Webhook) -> str:
    """Return the pod that serves previews, once it is ready."""

    def is_ready() -> bool:
        pods = separate.pods(PREVIEW)
        return len(pods) == 1 and separate.ask(pods[0], "/readyz").endswith("\nready\n")

    until(is_ready)
    (name,) = separate.pods(PREVIEW)
    return name


def test_it_answers(separate: Webhook, pod: str, space: Space) -> None:
    """For a person with the shipped Role, with the fabrics of the cluster."""
    separate.kubectl("create", "rolebinding", "apart", f"--role={PREVIEW}", "--user=somebody")
    port = f"https:{PREVIEW}:preview"
    wait_for_right(separate.cluster, "somebody", "create", "services/proxy", space=NAME, name=port)
    document = json.dumps(space.pod("asks", "nvidia.com/v100"))
    path = f"{_SERVICE}/preview?output=text&namespace-label=rdma.lab/enable=true"
    create = ("create", "--raw", path, "--filename=-", "--as=somebody")
    until(lambda: "equipped" in separate.kubectl(*create, input=document, check=False))
    printed = separate.kubectl(*create, input=document)
    separate.kubectl("delete", "rolebinding", "apart")
    assert printed.splitlines()[-1] == "1 pod: 1 equipped for RDMA"
    checks = [check.name for check in read_readiness(separate.ask(pod, "/readyz"))]
    assert checks == ["configuration", "certificate", "serving"]


def test_each_listens_at_its_own_ports(separate: Webhook, pod: str) -> None:
    """The replicas not at the port of previews, and the pod of previews not at that of /mutate."""
    replicas = separate.replicas()
    assert len(replicas) == 2
    ports = {name: listening(separate, name) for name in (*replicas, pod)}
    assert ports == {**{replica: [8080, 8443] for replica in replicas}, pod: [8080, 8444]}


def listening(webhook: Webhook, pod: str) -> list[int]:
    """Return the TCP ports at which a pod listens."""
    printed = webhook.kubectl("exec", pod, "--", "/app/bin/python", "-c", _LISTENING)
    ports: list[int] = json.loads(printed)
    return ports


def test_its_account_may_only_read_the_fabrics(separate: Webhook, pod: str) -> None:
    """Not what a replica may; and it asked for nothing that it may not have."""
    ours, theirs = (service_account(NAME, name) for name in (PREVIEW, NAME))
    kind = "fabricconfigurations.rdma.lab"
    assert is_allowed(separate.cluster, ours, "watch", kind)
    for verb, resource, space, name in (
        ("get", "secrets", NAME, f"{NAME}-ca"),
        ("update", "leases.coordination.k8s.io", NAME, NAME),
        ("create", "events.events.k8s.io", "default", ""),
        ("list", "namespaces", "", ""),
        ("list", "nodes", "", ""),
        ("patch", "mutatingwebhookconfigurations.admissionregistration.k8s.io", "", f"zz-{NAME}"),
        ("patch", "fabricconfigurations/status.rdma.lab", "", "default"),
    ):
        assert is_allowed(separate.cluster, theirs, verb, resource, space=space, name=name), (
            resource
        )
        assert not is_allowed(separate.cluster, ours, verb, resource, space=space, name=name), (
            resource
        )
    lines = [json.loads(line) for line in separate.kubectl("logs", pod).splitlines()]
    assert {line["level"] for line in lines} == {"info"}, lines


def test_check_install_has_no_complaint(separate: Webhook, pod: str) -> None:
    """It knows this form of an installation, and has a line on the Deployment."""
    assert pod
    until(lambda: problems(check(separate)) == [], lambda: problems(check(separate)))
    findings = [finding for part in check(separate).form["parts"] for finding in part["findings"]]
    assert f"Deployment {PREVIEW}: 1 of 1 pod ready" in [finding["text"] for finding in findings]
