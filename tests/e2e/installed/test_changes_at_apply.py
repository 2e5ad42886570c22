"""Kubectl warns about changes of the FabricConfiguration that are valid, but perhaps not intended.

The tests store objects, so at the end the fabrics of the installation are applied again. Replicas
obey a deletion after seconds; a test that deletes the object waits for that, since until then they
seem to use the fabrics that are applied again.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from tests.cluster.fabrics import KIND, OBJECT, PATH, apply_fabrics, wait_until_in_use
from tests.cluster.install import Webhook, site
from tests.e2e.installed.redirection import redirected
from tests.e2e.wire import send
from tests.waiting import until
from webhook.config.load import MAX_SPEC_BYTES

BINDING = "validatingadmissionpolicybinding/rdma-webhook-removal"
ALLOW = "rdma.lab/allow-removal"
SERVER_SIDE = "--server-side"
REMOVED_BY_KUBECTL = (
    "field manager kubectl removes north, south, since the file just applied does not"
)


@pytest.fixture(scope="module")
def webhook(webhook: Webhook) -> Iterator[Webhook]:
    """Restore the fabrics of the installation."""
    webhook.cluster.skip_if_existing("the fabrics of the cluster")
    yield webhook
    restore(webhook)


def restore(webhook: Webhook) -> None:
    """Apply the fabrics of the installation, and wait until they are in use."""
    wait_until_in_use(
        webhook, apply_fabrics(webhook.cluster, webhook.fabrics.read_text(encoding="utf-8"))
    )


def stored(webhook: Webhook) -> dict[str, Any]:
    """Return the object."""
    return json.loads(webhook.read(PATH))  # type: ignore[no-any-return]


def names(webhook: Webhook) -> list[str]:
    """Return the names of the stored fabrics."""
    return [fabric["name"] for fabric in stored(webhook)["spec"]["fabrics"]]


def configuration(*fabrics: str, **fields: Any) -> str:
    """Write an object; no node belongs to any of these fabrics."""
    listed = [
        {
            "name": name,
            "match": {"gpuResources": [f"example.com/{name}"]},
            "resources": [{"name": f"rdma/{name}"}],
            "hcas": ["mlx5_0"],
            **fields,
        }
        for name in fabrics
    ]
    head = {"apiVersion": "rdma.lab/v1alpha1", "kind": "FabricConfiguration"}
    return json.dumps({**head, "metadata": {"name": "default"}, "spec": {"fabrics": listed}})


def applied(webhook: Webhook, text: str, *options: str) -> str:
    """Apply a text, and return all that kubectl prints, with each warning on one line."""
    printed = webhook.cluster.kubectl("apply", "--filename=-", *options, input=text, check=False)
    for path in ("spec.fabrics", "spec"):
        printed = printed.replace(f"\nWarning: {path}: ...", "")
    return printed


def test_the_nodes_of_removed_fabrics_are_counted(webhook: Webhook) -> None:
    """As far as the replicas know them; and the update is applied."""
    restore(webhook)
    expected = (
        "Warning: spec.fabrics: no longer has v100-ib (1 node), a100-ib (1 node), so ",
        "apply a file that contains all of the fabrics. [FabricWithNodesRemoved]",
        "fabricconfiguration.rdma.lab/default configured (server dry run)",
    )

    def has_all() -> bool:
        # A replica counts the nodes of other fabrics a moment after it uses them.
        printed = applied(webhook, configuration("north"), "--dry-run=server")
        return all(words in printed for words in expected)

    until(has_all)
    printed = applied(webhook, configuration(), "--dry-run=server")
    assert "Warning: spec.fabrics: is empty, so pods that opted in are rejected " in printed
    assert "[NoFabricsLeft]" in printed


def test_a_takeover_of_client_side_applies_is_explained_and_undone(webhook: Webhook) -> None:
    """Kubectl transfers the ownership and removes all other fabrics; the remedy restores them.

    Afterwards each manager keeps the fabrics of the other.
    """
    kubectl = webhook.cluster.kubectl
    kubectl("delete", OBJECT)
    wait_until_in_use(webhook, "")
    first, second = configuration("north", "south"), configuration("east")
    applied(webhook, first)
    printed = applied(webhook, second, SERVER_SIDE, "--field-manager=team")
    assert names(webhook) == ["east"]
    assert (
        "Warning: spec.fabrics: field manager team removes north, south, since the file just "
        "applied does not contain them, and this manager owned them, perhaps because kubectl "
        "transferred them from a client-side apply. To undo the removal, run"
    ) in printed
    assert "[FabricsRemovedByApply]" in printed
    for text, manager in ((first, "own"), (second, "team"), (first, "own")):
        assert "Warning" not in applied(webhook, text, SERVER_SIDE, f"--field-manager={manager}")
    assert sorted(names(webhook)) == ["east", "north", "south"]


def test_a_second_file_of_the_default_manager_is_explained(webhook: Webhook) -> None:
    """Without `--field-manager`, all files have the same manager."""
    webhook.cluster.kubectl("delete", OBJECT)
    applied(webhook, configuration("north", "south"))
    printed = applied(webhook, configuration("east"), SERVER_SIDE)
    assert REMOVED_BY_KUBECTL in printed
    assert "perhaps because kubectl transferred them" in printed
    webhook.cluster.kubectl("delete", OBJECT)
    applied(webhook, configuration("north", "south"), SERVER_SIDE)
    printed = applied(webhook, configuration("west"), SERVER_SIDE)
    assert REMOVED_BY_KUBECTL in printed
    assert "and this manager owned them from an earlier apply" in printed


def test_changes_of_others_fields_are_reported(webhook: Webhook) -> None:
    """By force, by an edit that is no apply, and by a client-side apply that removes a fabric."""
    webhook.cluster.kubectl("delete", OBJECT)
    for name in ("north", "south"):
        applied(webhook, configuration(name), SERVER_SIDE, f"--field-manager={name}")
    other = configuration("north", rateGbps=25, hcas=["mlx5_1"])
    forced = (SERVER_SIDE, "--field-manager=team", "--force-conflicts", "--dry-run=server")
    printed = applied(webhook, other, *forced)
    assert (
        "Warning: spec: field manager team changes fields that other field managers had applied: "
        "fabric north (north). Make the same change in the file"
    ) in printed
    assert "[OwnershipChanged]" in printed
    patch = [{"op": "remove", "path": "/spec/fabrics/1"}]
    changed = ("--type=json", f"--patch={json.dumps(patch)}", "--dry-run=server")
    printed = webhook.cluster.kubectl("patch", OBJECT, *changed, check=False)
    removal = "kubectl-patch removes what other field managers had applied: fabric south (south)"
    assert removal in printed
    assert "[FabricOfOtherManagerRemoved]" in printed


@pytest.mark.parametrize("options", [(), (SERVER_SIDE, "--field-manager=team")])
def test_a_spec_that_is_too_large_is_rejected(webhook: Webhook, options: tuple[str, ...]) -> None:
    """The sentence names the size, the maximum and a remedy; just below it is accepted."""
    for size, accepted in ((MAX_SPEC_BYTES + 1000, False), (MAX_SPEC_BYTES - 1000, True)):
        text = configuration("large", env={"A": "x" * (size - 100)})
        printed = applied(webhook, text, "--dry-run=server", *options)
        assert ("(server dry run)" in printed) == accepted
        assert ("bytes as JSON; the maximum is 163,840, since the object" in printed) != accepted


# Deletions.


def deleted(webhook: Webhook, target: str = OBJECT, nodes: int = 2, unavailable: int = 0) -> str:
    """Dry-run a deletion with these numbers of nodes, and return all that kubectl prints.

    A replica may overwrite the numbers at any time.
    """
    fabric = {"name": "north", "nodes": nodes, "unavailableNodes": unavailable}
    patch = json.dumps({"status": {"nodes": nodes, "fabrics": [fabric]}})
    kubectl = webhook.cluster.kubectl
    kubectl("patch", OBJECT, "--subresource=status", "--type=merge", f"--patch={patch}")
    return kubectl("delete", target, "--dry-run=server", check=False)


@pytest.mark.parametrize(
    ("nodes", "unavailable", "warned"),
    [(2, 0, "(nodes that take pods: 2)"), (0, 1, "(nodes that take pods: 0)"), (0, 0, "")],
    ids=["nodes", "cordoned", "none"],
)
def test_a_deletion_warns_if_nodes_belong_to_fabrics(
    webhook: Webhook, nodes: int, unavailable: int, warned: str
) -> None:
    """Nodes that take no pods at the moment will take some again. Without nodes, nobody loses."""
    restore(webhook)
    prefix = "nodes belong to the fabrics of this configuration "

    def warns() -> bool:
        printed = deleted(webhook, OBJECT, nodes, unavailable)
        assert "deleted (server dry run)" in printed
        return f"{prefix}{warned}" in printed if warned else "Warning" not in printed

    until(warns)


def test_the_deletion_of_the_definition_warns(webhook: Webhook) -> None:
    """The API server then deletes the object, without asking any policy."""
    printed = deleted(webhook, KIND)
    assert "if this definition is deleted, the API server also deletes the Fabric" in printed
    assert "deleted (server dry run)" in printed


def test_a_deletion_works_without_the_webhook(webhook: Webhook) -> None:
    """The warning comes from the API server itself."""
    restore(webhook)
    with redirected(webhook, "nobody"):
        until(lambda: "failed calling" in applied(webhook, configuration("x"), "--dry-run=server"))
        until(lambda: "nodes belong to" in deleted(webhook))
        assert '"default" deleted' in webhook.cluster.kubectl("delete", OBJECT)
        wait_until_in_use(webhook, "")
    until(lambda: "created" in applied(webhook, configuration("north")))


@pytest.fixture
def denied(webhook: Webhook) -> Iterator[Webhook]:
    """Apply the binding as components/deny-removal renders it, and the shipped one afterwards."""
    restore(webhook)
    _bind(webhook, "deny-removal")
    until(lambda: "denied request" in deleted(webhook))
    yield webhook
    _bind(webhook)


def _bind(webhook: Webhook, *components: str) -> None:
    with site("removed:none", components=components) as folder:
        documents = yaml.safe_load_all(webhook.cluster.kubectl("kustomize", str(folder)))
        (binding,) = (
            document
            for document in documents
            if f"{document['kind'].lower()}/{document['metadata']['name']}" == BINDING
        )
    webhook.cluster.kubectl("apply", "--filename=-", input=json.dumps(binding))


def test_the_component_denies_and_the_annotation_allows(denied: Webhook) -> None:
    """A deletion of the object, of all objects of the kind, and of the kind."""
    annotate = ("annotate", "--overwrite")
    collection = PATH.rpartition("/")[0]
    # In the body: beside a body, the API server ignores the options of the query.
    options = {"apiVersion": "v1", "kind": "DeleteOptions", "dryRun": ["All"]}
    assert "first set the annotation rdma.lab/allow-removal=true on it" in deleted(denied)
    assert "nodes belong to" in send(denied.cluster, "DELETE", collection, options).refusal
    assert "denied request: if this definition is deleted" in deleted(denied, KIND)
    for target in (OBJECT, KIND):
        denied.cluster.kubectl(*annotate, target, f"{ALLOW}=yes")
        assert "denied request" in deleted(denied, target)
        denied.cluster.kubectl(*annotate, target, f"{ALLOW}=true")
        assert "deleted (server dry run)" in deleted(denied, target)
    assert send(denied.cluster, "DELETE", collection, options).code == 200
    assert stored(denied)["metadata"]["name"] == "default"
    denied.cluster.kubectl(*annotate, KIND, f"{ALLOW}-")
