"""Replicas that start and stop: draining, removal, and the next installation.

The order matters: each test starts where the test before ends, and the last one restores
the installation.
"""

from __future__ import annotations

import http.client
import json
import socket
import ssl
from base64 import b64decode
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.cluster.controllers import cert_manager
from tests.cluster.existing import existing
from tests.cluster.fabrics import CRD, hash_of, remove, stored, wait_until_in_use
from tests.cluster.install import (
    CONFIGURATION,
    DEPLOYMENT,
    NAME,
    VALIDATION,
    Webhook,
    changed_by_apply,
    install,
    site,
    uncalled,
    uninstall,
    uninstall_at_once,
)
from tests.cluster.namespaces import NamespaceError
from tests.e2e.admission.pods import create
from tests.e2e.documents import Document
from tests.e2e.installed.load import creating
from tests.e2e.installed.space import Space
from tests.faults.replicas import kill, processes, settled
from tests.waiting import until
from webhook.admission.registration import NO_FABRICS_MESSAGE
from webhook.config import EXAMPLE
from webhook.serve.sources.configuration_object import NO_KIND, NO_OBJECT

#: A finalizer that keeps a pod's object, so that tests can read how its process ended.
HOLD = "rdma.lab/test"
#: A GPU of the example's first fabric.
V100 = "nvidia.com/v100"


class Replica:
    """One replica, called at its own address as the API server and the kubelet do."""

    def __init__(self, webhook: Webhook, name: str) -> None:
        self._webhook = webhook
        self.name = name
        self.address = str(self.object()["status"]["podIP"])
        bundle = b64decode(_bundle(webhook, CONFIGURATION)).decode()
        self._trusted = ssl.create_default_context(cadata=bundle)

    def object(self) -> Document:
        """Return its pod."""
        pod: Document = json.loads(
            self._webhook.read(f"/api/v1/namespaces/{NAME}/pods/{self.name}")
        )
        return pod

    def ready(self) -> tuple[int, str]:
        """Get `/readyz`; return status and answer."""
        with closing(http.client.HTTPConnection(self.address, 8080, timeout=60)) as connection:
            connection.request("GET", "/readyz")
            answer = connection.getresponse()
            return answer.status, answer.read().decode()

    def serial(self) -> str:
        """Return the serial number of the certificate that it serves."""
        with closing(self.connect()) as connection:
            assert isinstance(connection.sock, ssl.SSLSocket)
            served = connection.sock.getpeercert() or {}
            return str(served["serialNumber"])

    def connect(self) -> http.client.HTTPConnection:
        """Open a connection, verified for the Service's name."""
        name = f"{NAME}.{NAME}.svc"
        connection = http.client.HTTPConnection(name)
        raw = socket.create_connection((self.address, 8443), 60)
        connection.sock = self._trusted.wrap_socket(raw, server_hostname=name)
        return connection

    def ended(self) -> Any:
        """Return how its process ended, or None while it runs."""
        (status,) = self.object()["status"]["containerStatuses"]
        return status["state"].get("terminated")


@contextmanager
def keep_objects(webhook: Webhook, names: list[str]) -> Iterator[list[Replica]]:
    """Keep these pods' objects until the end of the block, even after their processes end."""
    hold, release = (
        json.dumps({"metadata": {"finalizers": finalizers}}) for finalizers in ([HOLD], None)
    )
    for name in names:
        webhook.kubectl("patch", "pod", name, f"--patch={hold}", "--type=merge")
    try:
        yield [Replica(webhook, name) for name in names]
    finally:
        for name in names:
            webhook.kubectl("patch", "pod", name, f"--patch={release}", "--type=merge")


def post(connection: http.client.HTTPConnection, review: bytes) -> tuple[int, str | None]:
    """Send a review; return the status code and the Connection header."""
    connection.request("POST", "/mutate", review, {"Content-Type": "application/json"})
    answer = connection.getresponse()
    assert json.loads(answer.read())["response"]["allowed"] is True
    return answer.status, answer.getheader("Connection")


@pytest.fixture
def review(space: Space) -> bytes:
    """Return a review as the API server would send it."""
    request = {
        "uid": "0",
        "kind": {"group": "", "version": "v1", "kind": "Pod"},
        "resource": {"group": "", "version": "v1", "resource": "pods"},
        "operation": "CREATE",
        "namespace": space.name,
        "object": space.pod("drained", V100),
    }
    version = "admission.k8s.io/v1"
    return json.dumps(
        {"apiVersion": version, "kind": "AdmissionReview", "request": request}
    ).encode()


def test_a_replica_drains(webhook: Webhook, review: bytes) -> None:
    """After SIGTERM: unready, closing connections, and answering even without its endpoint.

    How it ends is tested under load, in tests/faults/test_replicas.py.
    """
    with ExitStack() as stack:
        (replica,) = stack.enter_context(keep_objects(webhook, webhook.replicas()[:1]))
        connection = stack.enter_context(closing(replica.connect()))
        assert (replica.ready()[0], post(connection, review)) == (200, (200, None))
        webhook.kubectl("delete", "pod", replica.name, "--wait=false")
        until(lambda: replica.ready()[0] == 503)
        assert "draining" in replica.ready()[1]
        # Even on the open connection, which the API server would use again.
        assert post(connection, review) == post(replica.connect(), review) == (200, "close")
        until(lambda: replica.address not in _ready_addresses(webhook))
        assert post(replica.connect(), review) == (200, "close")
    _settle(webhook)


def test_removal_blocks_no_pods(webhook: Webhook, space: Space, tmp_path: Path) -> None:
    """A removal as documented, while pods are created, rejects no pod; later pods are unchanged.

    The commands succeed when all is gone, and succeed again. The site's fabrics stay, for the next
    installation.

    If the webhook configuration were not deleted first, pods would be rejected between the deletion
    of the Service and that of the configuration, which kustomize puts last.
    """
    pod, fabrics = space.pod("left", V100), stored(webhook)
    with ThreadPoolExecutor(1) as executor, creating(space, pod, tmp_path) as load:
        load.continue_for(1)
        removal = executor.submit(uninstall, webhook.cluster)
        uncalled(webhook.cluster)
        after = space.proposed(pod)
        _end_the_drain(webhook)
        removal.result()
        separate = webhook.cluster.kubectl("get", "-k", str(CRD), "--output=name").split()
        assert _remaining(webhook) == {*separate}
        uninstall(webhook.cluster)
    assert "rdma.lab/status" not in after["metadata"]["annotations"]
    assert set(load.codes) == {201}, (load.refusals, load.blocked)
    assert 0 < load.patched < load.created
    assert _identity(stored(webhook)) == _identity(fabrics)


def _remaining(webhook: Webhook) -> set[str]:
    """Return the names of all objects of the cluster that have the label of ours."""
    kinds = webhook.cluster.kubectl("api-resources", "--verbs=list", "--output=name").split()
    listed = ("--all-namespaces", f"--selector=app.kubernetes.io/part-of={NAME}", "--output=name")
    return {*webhook.cluster.kubectl("get", ",".join(kinds), *listed).split()}


def _end_the_drain(webhook: Webhook) -> None:
    """Kill the draining processes where tests can do that, and wait until the namespace is gone."""
    if existing() is None:
        until(lambda: not webhook.replicas())  # one that is not being deleted would restart
        for container in processes(webhook).values():
            with suppress(NamespaceError):  # it has just ended by itself
                kill(webhook, container)
        until(lambda: not webhook.kubectl("get", "pods", "--output=name"))
        # Without a change, the namespace's controller waits as long as a drain may take.
        webhook.cluster.kubectl("annotate", "namespace", NAME, "look=again", check=False)
    webhook.cluster.kubectl("wait", "--for=delete", f"namespace/{NAME}", "--timeout=300s")


def test_certificates_by_cert_manager(webhook: Webhook, space: Space, tmp_path: Path) -> None:
    """The overlay works with the real cert-manager, and a renewal rejects no pod.

    The API server's trust stays the same, and both replicas serve the new certificate. They find
    the fabrics of the previous installation.
    """
    pod = space.pod("issued", V100)
    fabrics = stored(webhook)
    with cert_manager(webhook.cluster):
        install(webhook.cluster, overlay="cert-manager")
        _check_fabrics_kept(webhook, fabrics)
        until(lambda: _bundle(webhook, VALIDATION) == _bundle(webhook, CONFIGURATION))
        assert changed_by_apply(webhook.cluster, "cert-manager") == []
        replicas = [Replica(webhook, name) for name in webhook.replicas()]
        before = [replica.serial() for replica in replicas]
        with creating(space, pod, tmp_path) as load:
            _renew(webhook)
            # Otherwise the kubelet updates mounted Secrets about once a minute.
            webhook.kubectl("annotate", "pods", "--all", f"{HOLD}=look")
            until(lambda: not {*before} & {replica.serial() for replica in replicas})
            load.continue_for(2)
        uninstall_at_once(webhook.cluster, overlay="cert-manager")
    assert len(before) == 2
    assert set(load.codes) == {201}, load.refusals
    assert load.created == load.patched


def _identity(fabrics: Document) -> tuple[str, int]:
    """Return the values that change with the object and its spec, but not with its status."""
    return fabrics["metadata"]["uid"], fabrics["metadata"]["generation"]


def _check_fabrics_kept(webhook: Webhook, fabrics: Document) -> None:
    """Check that the object is the same, and that no replica has been without one."""
    assert _identity(stored(webhook)) == _identity(fabrics)
    for replica in webhook.replicas():
        logged = [json.loads(line)["msg"] for line in webhook.kubectl("logs", replica).splitlines()]
        assert "configuration loaded" in logged
        assert "no fabrics" not in logged


def test_each_wrong_order_explains_what_to_do(
    webhook: Webhook, space: Space, tmp_path: Path
) -> None:
    """The cluster begins without kind, program and fabrics; docs/upgrading.md has the steps.

    A missing step can be made up for later, and no replica restarts for it. In the end, everything
    is as after an installation in the right order.
    """
    cluster, fabrics, pod = webhook.cluster, tmp_path / "fabrics.yaml", space.pod("early", V100)
    fabrics.write_text(EXAMPLE.read_text())
    remove(cluster)
    # kubectl remembers kinds. With a new cache, it has never seen this one.
    apply = ("apply", f"--cache-dir={tmp_path / 'cache'}")
    assert cluster.kubectl(*apply, f"--filename={fabrics}", check=False) == _no_match(fabrics)

    with site(webhook.image) as folder:
        cluster.kubectl("apply", "-k", str(folder))
    settled(webhook)
    until(lambda: create(cluster, pod).refusal.endswith(f"{NO_FABRICS_MESSAGE}{NO_KIND}"))
    assert _configurations(webhook) == {NO_KIND}
    begun = processes(webhook)

    files = (f"--filename={CRD / 'fabricconfigurations.yaml'}", f"--filename={fabrics}")
    defined = "customresourcedefinition.apiextensions.k8s.io/fabricconfigurations.rdma.lab"
    printed = cluster.kubectl(*apply, *files, check=False)
    assert printed == f"{defined} created\n{_no_match(fabrics)}"
    noticed = until(lambda: _configurations(webhook) == {NO_OBJECT})
    print(f"the kind was noticed after {noticed:.1f} s")  # noqa: T201
    assert create(cluster, pod).refusal.endswith(f"{NO_FABRICS_MESSAGE}{NO_OBJECT}")

    printed = cluster.kubectl(*apply, *files)
    assert printed == f"{defined} unchanged\nfabricconfiguration.rdma.lab/default created\n"
    wait_until_in_use(webhook, hash_of(yaml.safe_load(fabrics.read_text())))
    assert create(cluster, pod).status["fabric"] == "v100-ib"
    assert processes(webhook) == begun


def _no_match(file: Path) -> str:
    """Return kubectl's error for fabrics whose kind the cluster does not have."""
    return (
        f'error: resource mapping not found for name: "default" namespace: "" from "{file}": '
        'no matches for kind "FabricConfiguration" in version "rdma.lab/v1alpha1"\n'
        "ensure CRDs are installed first\n"
    )


def _configurations(webhook: Webhook) -> set[str]:
    """Return the states of the configuration that the replicas report."""
    lines = [webhook.ask(replica, "/readyz").splitlines() for replica in webhook.replicas()]
    head = "[+] configuration: "
    return {
        line.removeprefix(head)
        for replica_lines in lines
        for line in replica_lines
        if line.startswith(head)
    }


def _bundle(webhook: Webhook, configuration: str) -> str:
    document = json.loads(webhook.kubectl("get", configuration, "--output=json"))
    return str(document["webhooks"][0]["clientConfig"].get("caBundle", ""))


def _renew(webhook: Webhook) -> None:
    """Request a new certificate as cert-manager's `cmctl renew` does, and wait for it."""
    read = ("get", "secret", f"{NAME}-tls", "--output=jsonpath={.data}")
    before = webhook.kubectl(*read)
    issuing = {"type": "Issuing", "status": "True", "reason": "ManuallyTriggered", "message": "now"}
    patch = json.dumps([{"op": "add", "path": "/status/conditions/-", "value": issuing}])
    certificate = ("patch", "certificate", NAME, "--subresource=status", "--type=json")
    webhook.kubectl(*certificate, f"--patch={patch}")
    until(lambda: webhook.kubectl(*read) != before)


def _ready_addresses(webhook: Webhook) -> set[str]:
    """Return the addresses of the Service's ready endpoints."""
    labels = f"--selector=kubernetes.io/service-name={NAME}"
    slices = json.loads(webhook.kubectl("get", "endpointslices", labels, "--output=json"))["items"]
    return {
        address
        for endpoint_slice in slices
        for endpoint in endpoint_slice["endpoints"] or ()
        if endpoint["conditions"]["ready"]
        for address in endpoint["addresses"]
    }


def _settle(webhook: Webhook) -> None:
    webhook.kubectl("rollout", "status", DEPLOYMENT, "--timeout=300s")
