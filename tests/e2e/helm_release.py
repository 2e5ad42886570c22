"""A release of the chart in the cluster, by one version of Helm."""

from __future__ import annotations

import json
import subprocess
from base64 import b64decode
from typing import NamedTuple

from tests.cluster.binaries import binary
from tests.cluster.cluster import Cluster
from tests.cluster.images import ROOT
from tests.cluster.install import CONFIGURATION, NAME, VALIDATION
from tests.cluster.namespaces import environ

CHART = ROOT / "manifests" / "chart"
_BUNDLE = "jsonpath={.webhooks[0].clientConfig.caBundle}"


class Written(NamedTuple):
    """What the replicas have written themselves, and no upgrade may change.

    A rotation that was started two minutes ago changes which CA is the first. So CAs are compared
    without their order.
    """

    #: The CAs in caBundle of the two webhook configurations.
    bundles: tuple[frozenset[str], frozenset[str]]
    #: The CAs in the Secret.
    secret: frozenset[str]
    #: The name of the replica that holds the Lease.
    holder: str


def _authorities(bundle: str) -> frozenset[str]:
    return frozenset(b64decode(bundle).decode().split("-----BEGIN CERTIFICATE-----")[1:])


class Release:
    """The release, and commands of Helm on it."""

    def __init__(self, cluster: Cluster, version: str, image: str) -> None:
        self.cluster = cluster
        self._program = binary(version, cluster.minor)
        repository, _, tag = image.rpartition(":")
        self.values = (f"--set=image.repository={repository}", f"--set=image.tag={tag}")

    def helm(self, *arguments: str, namespace: str = NAME) -> str:
        """Run Helm, and return its output; AssertionError if it fails."""
        ran = self._run(*arguments, namespace=namespace)
        assert ran.returncode == 0, ran.stderr
        return ran.stdout

    def refusal(self, *arguments: str, namespace: str = NAME) -> str:
        """Run Helm, which must fail, and return its message."""
        ran = self._run(*arguments, namespace=namespace)
        assert ran.returncode == 1, ran.stdout
        return ran.stderr

    def _run(self, *arguments: str, namespace: str) -> subprocess.CompletedProcess[str]:
        home = self.cluster.directory / "helm"
        folders = {f"HELM_{kind}_HOME": str(home / kind) for kind in ("CACHE", "CONFIG", "DATA")}
        return subprocess.run(
            [self._program, *arguments, f"--namespace={namespace}"],
            env={**environ(), **folders, "KUBECONFIG": str(self.cluster.kubeconfig)},
            capture_output=True,
            text=True,
            check=False,
        )

    def rendered(self) -> str:
        """Render the release's objects, as GitOps tools do."""
        return self.helm("template", NAME, str(CHART), "--skip-tests", *self.values)

    def written(self) -> Written:
        """Read what the replicas have written."""

        def get(name: str, field: str) -> str:
            return self.cluster.kubectl(f"--namespace={NAME}", "get", name, f"--output={field}")

        data = json.loads(get("secret/rdma-webhook-ca", "json"))["data"]
        in_secret = [_authorities(value) for key, value in data.items() if key.endswith(".crt")]
        return Written(
            (_authorities(get(CONFIGURATION, _BUNDLE)), _authorities(get(VALIDATION, _BUNDLE))),
            frozenset().union(*in_secret),
            get(f"lease/{NAME}", "jsonpath={.spec.holderIdentity}"),
        )

    def private_keys(self) -> frozenset[str]:
        """Read the keys of the CAs in the Secret; a rotation removes the first one's."""
        name = "secret/rdma-webhook-ca"
        secret = self.cluster.kubectl(f"--namespace={NAME}", "get", name, "--output=json")
        data = json.loads(secret)["data"]
        return frozenset(value for key, value in data.items() if key.endswith(".key"))

    def failure_policy(self) -> str:
        """Return the failurePolicy of the webhook for pods."""
        field = "jsonpath={.webhooks[0].failurePolicy}"
        return self.cluster.kubectl("get", CONFIGURATION, f"--output={field}")
