"""Kubectl shows the errors in a FabricConfiguration as soon as it is applied.

Most applies are server-side dry runs, so the fabrics of the installation stay as they are.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest

from tests.cluster.cluster import KubectlError
from tests.cluster.install import Webhook
from tests.cluster.kinds import install_kinds
from tests.e2e.installed.redirection import redirected
from tests.e2e.renderings import MANIFESTS
from tests.waiting import until

FABRIC: dict[str, Any] = {
    "name": "ib",
    "match": {"gpuResources": ["example.com/gpu"]},
    "resources": [{"name": "rdma/hca"}],
    "hcas": ["mlx5_0"],
}
CALLED = 'failed calling webhook "fabrics.rdma.lab"'


@pytest.fixture(scope="module")
def kind(webhook: Webhook) -> Iterator[Webhook]:
    """Define the kind and make an object, if the installation has none."""
    kubectl = webhook.cluster.kubectl
    install_kinds(webhook.cluster, str(MANIFESTS / "crd" / "fabricconfigurations.yaml"))
    until(lambda: "FIELDS" in kubectl("explain", "fabrics", check=False))
    existing = kubectl("get", "fabrics", "default", "--ignore-not-found")
    if not existing:
        kubectl("apply", "--filename=-", input=configuration(FABRIC))
    yield webhook
    if not existing:
        kubectl("delete", "fabrics", "default")


def configuration(*fabrics: dict[str, Any]) -> str:
    """Write an object."""
    return json.dumps(
        {
            "apiVersion": "rdma.lab/v1alpha1",
            "kind": "FabricConfiguration",
            "metadata": {"name": "default"},
            "spec": {"fabrics": fabrics},
        }
    )


def applied(webhook: Webhook, text: str, *options: str, check: bool = True) -> str:
    """Apply a text, without storing it, and return kubectl's output."""
    apply = ("apply", "--dry-run=server", "--filename=-", *options)
    return webhook.cluster.kubectl(*apply, input=text, check=check)


@pytest.mark.parametrize(
    "options", [(), ("--server-side", "--force-conflicts")], ids=["client side", "server side"]
)
def test_a_wrong_configuration_is_rejected(kind: Webhook, options: tuple[str, ...]) -> None:
    """Kubectl shows each error with its path and what would be right, and a replica counts it."""
    before = kind.counted("rdma_webhook_validations_total", "allowed")
    invalid = configuration({**FABRIC, "hcass": [], "resources": [{"name": "rdma/a-b"}]})
    with pytest.raises(KubectlError) as error:
        applied(kind, invalid, *options)
    message = str(error.value)
    assert 'The FabricConfiguration "default" is invalid: \n' in message
    # A server-side apply adds the fabric to the existing ones.
    assert re.search(
        r"\* spec\.fabrics\[\d]\.hcass: unknown field \(did you mean hcas\?\)\n", message
    )
    assert re.search(r"\* spec\.fabrics\[\d]\.resources\[0]\.name: 'rdma/a-b' is not a ", message)
    counted = kind.counted("rdma_webhook_validations_total", "allowed") - before
    assert counted["false",] >= 1  # the API server may ask again if the object has changed


def test_a_warning_is_shown(kind: Webhook) -> None:
    """It rejects nothing."""
    printed = applied(kind, configuration({**FABRIC, "hcas": []}), check=False)
    assert "fabricconfiguration.rdma.lab/default " in printed
    assert "(server dry run)\n" in printed
    assert "Warning: spec.fabrics[0].hcas: is empty, so NCCL and UCX use every device" in printed


def test_while_no_replica_answers_no_spec_can_be_changed(kind: Webhook) -> None:
    """The error names the webhook; labels and deletions need none, and later all is as before."""
    other = configuration({**FABRIC, "rateGbps": 25})
    applied(kind, other)
    with redirected(kind, "nobody"):
        until(lambda: CALLED in applied(kind, other, check=False))
        for change in (("label", "example.com/a=b"), ("delete",)):
            verb, *options = change
            kind.cluster.kubectl(verb, "fabrics", "default", "--dry-run=server", *options)
    until(lambda: CALLED not in applied(kind, other, check=False))
    applied(kind, other)
