"""The webhook of this checkout as a process that the API server calls by URL."""

from __future__ import annotations

import base64
import json
import sys
import urllib.request
from collections.abc import Callable
from pathlib import Path

import yaml

from tests.cluster.cluster import Cluster
from tests.e2e.admission.places import CALLED_BY
from tests.e2e.documents import Document, apply
from tests.integration.serving import Certificates, certificates
from tests.waiting import until

_URL = Path(__file__).parents[3] / "manifests/overlays/url"
_FABRICS = """\
apiVersion: rdma.lab/v1alpha1
kind: FabricConfiguration
spec:
  defaults: {defaults}
  fabrics:
  - name: v100-ib
    match: {{gpuResources: [nvidia.com/v100]}}
    resources: [{{name: rdma/rdma_v100}}]
    linkLayer: InfiniBand
    hcas: [mlx5_0]
    socketInterface: eth0
"""
_CALLS = 'rdma_webhook_requests_total{code="200",endpoint="mutate"}'


class Webhook:
    """`rdma-webhook serve` next to the API server: its `localhost` is the API server's."""

    def __init__(self, cluster: Cluster, name: str, folder: Path, *flags: str, **defaults: str):
        folder.mkdir()
        self.name = name
        self.tls = certificates(folder)
        self._cluster = cluster
        self.config = folder / "fabrics.yaml"
        self.config.write_text(_FABRICS.format(defaults=json.dumps(defaults)))
        self._process = cluster.start(f"webhook-{name}", _serve(self.config, self.tls, *flags))

    def wait_for_ports(self) -> None:
        """Wait until the log has its ports."""
        until(self._ports_logged)

    def _ports_logged(self) -> bool:
        assert not self._process.ended(), self._process.tail()
        serving = self.logged("serving")
        if serving:
            self.ports: dict[str, int] = serving[0]["ports"]
        return bool(serving)

    def logged(self, message: str) -> list[Document]:
        """Read the log's lines with this message."""
        lines = self._process.log.read_text().splitlines(keepends=True)
        entries = [json.loads(line) for line in lines if line.endswith("\n")]
        return [entry for entry in entries if entry["msg"] == message]

    @property
    def url(self) -> str:
        """The address at which the API server calls it."""
        return f"https://localhost:{self.ports['mutate']}/mutate"

    def calls(self) -> int:
        """Return the number of its answered reviews."""
        return int(self.metric(_CALLS))

    def metric(self, series: str) -> float:
        """Read a series of its metrics; 0 if it does not exist yet."""
        address = f"http://{self._cluster.network.gateway}:{self.ports['health']}/metrics"
        with urllib.request.urlopen(address, timeout=60) as answer:
            lines = answer.read().decode().splitlines()
        return sum(float(line.split()[-1]) for line in lines if line.startswith(f"{series} "))

    def during(self, action: Callable[[], object]) -> int:
        """Return the number of its calls while `action` ran."""
        before = self.calls()
        action()
        return self.calls() - before

    def stop(self) -> None:
        """Stop the process."""
        self._process.stop()


def _serve(config: Path, tls: Certificates, *flags: str) -> list[str]:
    return [
        sys.executable, "-m", "webhook", "serve", "--config", str(config),
        "--tls-cert", str(tls.cert), "--tls-key", str(tls.key),
        "--port", "0", "--preview", "off", "--health-port", "0", "--drain-seconds", "0", *flags,
    ]  # fmt: skip


def register(cluster: Cluster, label: str, webhook: Webhook, reinvocation: str = "") -> str:
    """Register it with the API server, like overlays/url, for namespaces with this label.

    Returns the name of the configuration.
    """
    document = _shipped(cluster)
    document["metadata"]["name"] += f"-test-{label}"
    (hook,) = document["webhooks"]
    # Its matchExpressions stay; the label exists only in tests, so no installation is called, too.
    hook["namespaceSelector"]["matchLabels"] = {CALLED_BY: label}
    bundle = base64.b64encode(webhook.tls.ca.certificate).decode()
    hook["clientConfig"] = {"url": webhook.url, "caBundle": bundle}
    hook["failurePolicy"] = "Fail"  # as in base: a webhook that does not answer must be noticed
    hook["reinvocationPolicy"] = reinvocation or hook["reinvocationPolicy"]
    apply(cluster, document)
    return str(document["metadata"]["name"])


def _shipped(cluster: Cluster) -> Document:
    for document in yaml.safe_load_all(cluster.kubectl("kustomize", str(_URL))):
        if document["kind"] == "MutatingWebhookConfiguration":
            configuration: Document = document
            return configuration
    raise AssertionError("overlays/url has no MutatingWebhookConfiguration")
