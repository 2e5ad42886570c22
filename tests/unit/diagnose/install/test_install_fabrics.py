"""The FabricConfiguration exists, its conditions are true, and its nodes have no problems."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.diagnose.install.installation import Installation
from webhook.model.finding import Finding

TITLE = "fabricconfigurations.rdma.lab/default"
FALSE = (
    "Correct the problem that the message reports; `kubectl describe fabrics default` shows all "
    "conditions and Events."
)


def condition(installation: Installation, name: str) -> dict[str, Any]:
    """Return a condition of the configuration."""
    conditions: list[dict[str, Any]] = installation.configuration["status"]["conditions"]
    return next(entry for entry in conditions if entry["type"] == name)


def fail(installation: Installation, name: str, reason: str, message: str) -> None:
    """Make a condition false."""
    condition(installation, name).update(status="False", reason=reason, message=message)


def test_all_is_well(installation: Installation) -> None:
    """The texts name the fabrics and count their nodes."""
    assert installation.texts("fabrics") == [
        f"{TITLE} (v100-ib, a100-ib) is Valid, Active, Called and Ready",
        "no problems with the fabrics and their 4 nodes",
    ]


def test_a_missing_configuration(installation: Installation) -> None:
    """It is the only finding: what depends on it is not judged."""
    installation.delete("FabricConfiguration", "default")
    text = f"{TITLE} does not exist, so no pod gets RDMA"
    remedy = "Apply your fabrics: `kubectl apply -f fabrics.yaml` (docs/installation.md, Fabrics)."
    assert installation.findings() == [Finding("error", "NoFabrics", text, remedy)]


def test_a_configuration_that_cannot_be_read(installation: Installation) -> None:
    """It is not taken for a missing one."""
    installation.refuse("FabricConfiguration", "default")
    text = f"{TITLE}: not checked, since you lack the right to get fabricconfigurations.rdma.lab"
    (finding,) = installation.findings()
    assert (finding.level, finding.code, finding.text) == ("unsure", "NotChecked", text)


def test_a_false_condition(installation: Installation) -> None:
    """`Ready` repeats the reason of another condition, so it is not reported as well."""
    for name in ("Active", "Ready"):
        fail(installation, name, "LastGoodInUse", "The last good configuration stays in use.")
    text = "Active is False: The last good configuration stays in use."
    assert installation.findings() == [Finding("error", "ConditionFalse", text, FALSE)]
    assert installation.texts("fabrics")[1] == f"{TITLE} (v100-ib, a100-ib) is Valid and Called"


def test_not_ready_for_its_own_reason(installation: Installation) -> None:
    """Replicas that differ are reported by `Ready` alone."""
    fail(installation, "Ready", "ReplicasDiffer", "1 of 2 replicas does not use it.")
    text = "Ready is False: 1 of 2 replicas does not use it."
    assert installation.findings() == [Finding("error", "ConditionFalse", text, FALSE)]


def test_an_unknown_condition(installation: Installation) -> None:
    """A replica could not check whether it is called."""
    condition(installation, "Called").update(status="Unknown", reason="NotReadable", message="No.")
    text = "Called is Unknown: No."
    assert installation.findings() == [Finding("unsure", "ConditionFalse", text, FALSE)]


def test_a_mistake_that_a_replica_reports_too(installation: Installation) -> None:
    """It is reported once, on the webhook configuration."""
    installation.delete("ValidatingWebhookConfiguration", "rdma-webhook")
    for name in ("Called", "Ready"):
        fail(installation, name, "NoWebhookConfiguration", "It does not exist.")
    assert [finding.code for finding in installation.findings()] == ["NoWebhookConfiguration"]


def test_a_ca_bundle_that_a_replica_misses_too(installation: Installation) -> None:
    """It is reported once, on the certificates."""
    registration = installation["MutatingWebhookConfiguration", "zz-rdma-webhook"]["webhooks"][0]
    del registration["clientConfig"]["caBundle"]
    fail(installation, "Called", "OtherCaBundle", "It has no caBundle.")
    assert [finding.code for finding in installation.findings()] == ["OtherCaBundle"]


@pytest.mark.parametrize("change", ["no conditions", "older generation"])
def test_an_outdated_status(installation: Installation, change: str) -> None:
    """Its conditions are about an earlier object, or were never written."""
    if change == "no conditions":
        installation.configuration["status"]["conditions"] = []
    else:
        condition(installation, "Active")["observedGeneration"] = 2
    text = f"the status of {TITLE} does not describe its generation 3"
    remedy = (
        "After a change, wait a few seconds. If the status stays outdated, check that the replicas "
        "are running, and that the Lease rdma-webhook exists in their namespace."
    )
    assert installation.findings() == [Finding("warning", "StatusOutdated", text, remedy)]
    assert installation.texts("fabrics")[1:] == ["no problems with the fabrics and their 4 nodes"]


def test_problems_of_nodes(installation: Installation) -> None:
    """Their number is in the status, and `fabrics` shows them."""
    installation.configuration["status"]["problems"] = 3
    remedy = "Run `rdma-webhook fabrics`, which names the nodes and the remedies."
    text = "3 problems with the fabrics or their nodes"
    assert installation.findings() == [Finding("warning", "NodesHaveProblems", text, remedy)]
    assert len(installation.texts("fabrics")) == 2


def test_nodes_that_are_unknown(installation: Installation) -> None:
    """Nothing is said about them."""
    del installation.configuration["status"]["nodes"]
    assert len(installation.texts("fabrics")) == 1


def test_no_condition_is_true(installation: Installation) -> None:
    """There is no line on the true ones."""
    for name in ("Valid", "Active", "Called", "Ready"):
        fail(installation, name, "NotUsable", "fabrics[0] has no name.")
    (finding,) = installation.findings()
    assert finding.text == "Valid is False: fabrics[0] has no name."
    assert len(installation.texts("fabrics")) == 2


def test_a_status_that_nobody_updates(installation: Installation) -> None:
    """Without replicas, conditions of before are no proof of anything."""
    installation.pods.clear()
    assert not [text for text in installation.texts("fabrics") if "Valid" in text]
    installation.refused["/api/v1/namespaces/rdma-webhook/pods"] = 403
    assert [text for text in installation.texts("fabrics") if "Valid" in text]
