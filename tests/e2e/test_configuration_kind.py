"""The kind FabricConfiguration on a real API server, through the real kubectl.

Objects are stored under a second definition with the same schema and another name, so that no
webhook that runs in the cluster takes them for its configuration.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.cluster.cluster import Cluster, KubectlError
from tests.e2e.renderings import MANIFESTS
from tests.e2e.wire import send
from tests.waiting import until
from webhook.config import EXAMPLE
from webhook.config.crd import definition
from webhook.config.load import MAX_SPEC_BYTES
from webhook.config.messages import known_fields

EXAMPLES = sorted(EXAMPLE.parent.glob("*.yaml"))
#: The second definition, and the short name of its kind.
GROUP, STORED = "kind.test", "storedfabrics"
APPLY, MERGE = "application/apply-patch+yaml", "application/merge-patch+json"


@pytest.fixture(scope="module")
def kind(cluster: Cluster) -> Iterator[Cluster]:
    """Apply manifests/crd as documented, and the second definition."""
    cluster.skip_if_existing("CustomResourceDefinitions of its own")
    cluster.kubectl("apply", "-k", str(MANIFESTS / "crd"))
    second = definition()
    second["metadata"]["name"] = f"fabricconfigurations.{GROUP}"
    second["spec"]["group"] = GROUP
    second["spec"]["names"]["shortNames"] = [STORED]
    cluster.kubectl("apply", "--filename=-", input=json.dumps(second))
    names = [f"crd/fabricconfigurations.{group}" for group in ("rdma.lab", GROUP)]
    cluster.kubectl("wait", "--for=condition=Established", "--timeout=300s", *names)
    # The API server publishes the schemas a moment later.
    for name in ("fabrics", STORED):
        until(lambda name=name: "FIELDS" in cluster.kubectl("explain", name, check=False))  # type: ignore[misc]
    yield cluster
    cluster.kubectl("delete", "--wait=false", names[1])


@pytest.fixture
def stored(kind: Cluster) -> Iterator[Cluster]:
    """Remove the object after the test."""
    yield kind
    kind.kubectl("delete", STORED, "--all")


def configuration(group: str = GROUP, name: str = "default", **spec: Any) -> str:
    """Write an object."""
    return yaml.safe_dump(
        {
            "apiVersion": f"{group}/v1alpha1",
            "kind": "FabricConfiguration",
            "metadata": {"name": name},
            "spec": {"fabrics": [{"name": "ib"}], **spec},
        }
    )


def apply(cluster: Cluster, text: str, *options: str) -> None:
    """Apply a text."""
    cluster.kubectl("apply", "--filename=-", *options, input=text)


def refused(cluster: Cluster, text: str) -> str:
    """Apply a text that the API server rejects, and return kubectl's message."""
    with pytest.raises(KubectlError) as error:
        apply(cluster, text)
    return str(error.value)


def spec(cluster: Cluster) -> dict[str, Any]:
    """Return the spec of the stored object."""
    return get(cluster)["spec"]  # type: ignore[no-any-return]


def get(cluster: Cluster) -> dict[str, Any]:
    """Return the stored object."""
    return json.loads(cluster.kubectl("get", STORED, "default", "--output=json"))  # type: ignore[no-any-return]


@pytest.mark.parametrize("of", ["", "fabrics", "fabrics[].resources[]", "fabrics[].qos"])
def test_kubectl_explains_every_field(kind: Cluster, of: str) -> None:
    """By the short name, `kubectl explain` shows the fields with their meaning, range, default."""
    path = ".".join(part for part in ("fabrics.spec", of.replace("[]", "")) if part)
    explained = " ".join(kind.kubectl("explain", path).split())
    below = [
        field
        for field in known_fields()
        if field.path.rpartition(".")[0].removesuffix("[]") == of.removesuffix("[]")
    ]
    assert len(below) >= 4
    assert [field for field in below if f"{field.name} <" not in explained] == []
    assert [field for field in below if field.description not in explained] == []


def test_kubectl_explains_a_choice(kind: Cluster) -> None:
    """A choice shows its words and its default."""
    explained = kind.kubectl("explain", "fabrics.spec.fabrics.mode")
    assert "shared-device" in explained.partition("DESCRIPTION")[0]
    assert (
        "Defaults to\n    `shared-device`" in explained
        or "Defaults to `shared-device`" in explained
    )


@pytest.mark.parametrize(
    ("of", "below"),
    [
        ("conditions", {"type", "status", "observedGeneration", "reason", "message"}),
        ("fabrics", {"name", "nodes", "resources", "problems", "notes"}),
        ("fabrics.resources", {"name", "allocatable", "nodes"}),
        ("replicas", {"config", "generation", "version", "seen"}),
        ("kept", {"generation", "config", "spec"}),
    ],
)
def test_kubectl_explains_the_status(kind: Cluster, of: str, below: set[str]) -> None:
    """It shows the fields of the items with their meaning, although the schema allows any form."""
    explained = kind.kubectl("explain", f"fabrics.status.{of}").partition("FIELDS:")[2]
    fields = {line.split()[0]: line for line in explained.splitlines() if "<" in line}
    assert set(fields) >= below
    assert "<no description>" not in explained


@pytest.mark.parametrize("file", EXAMPLES, ids=lambda file: file.stem)
def test_an_example_can_be_applied(kind: Cluster, file: Path) -> None:
    """A server-side dry run takes each example as it ships, without a warning about the file.

    If the webhook is installed, it warns that its fabrics are removed.
    """
    apply = ("apply", "--dry-run=server", "--filename", str(file))
    first, *others = kind.kubectl(*apply, check=False).splitlines()
    assert first.startswith("fabricconfiguration.rdma.lab/default ")
    assert first.endswith("(server dry run)")
    assert [line for line in others if not line.startswith("Warning: spec.fabrics: ")] == []


def test_kubectl_diff_shows_what_an_apply_would_change(stored: Cluster) -> None:
    """It is empty after the apply."""
    text = configuration()
    apply(stored, text)
    assert stored.kubectl("diff", "--filename=-", input=text) == ""
    changed = configuration(fabrics=[{"name": "ib", "rateGbps": 400}])
    diff = stored.kubectl("diff", "--filename=-", input=changed, check=False)
    assert "+  - name: ib" in diff or "+    rateGbps: 400" in diff


def test_two_managers_each_apply_their_fabrics(stored: Cluster) -> None:
    """Fabrics are merged by name; a manager removes its own, and cannot change the other's."""
    first = configuration(fabrics=[{"name": "ib", "rateGbps": 100}])
    second = configuration(fabrics=[{"name": "roce", "linkLayer": "Ethernet"}])
    for manager, text in (("first", first), ("second", second)):
        apply(stored, text, "--server-side", f"--field-manager={manager}")
    assert [fabric["name"] for fabric in spec(stored)["fabrics"]] == ["ib", "roce"]

    other = configuration(fabrics=[{"name": "ib", "rateGbps": 200}])
    with pytest.raises(KubectlError, match=r'\.spec\.fabrics\[name="ib"\]\.rateGbps'):
        apply(stored, other, "--server-side", "--field-manager=second")

    apply(stored, configuration(fabrics=[]), "--server-side", "--field-manager=first")
    assert [fabric["name"] for fabric in spec(stored)["fabrics"]] == ["roce"]


def test_the_table_shows_the_status(stored: Cluster) -> None:
    """The status is a subresource: it changes no generation, and an apply does not change it."""
    apply(stored, configuration())
    condition = {
        "type": "Ready",
        "status": "True",
        "reason": "InUse",
        "message": "",
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    }
    status = {
        "observedGeneration": 1,
        "fabricNames": "ib",
        "nodes": 3,
        "problems": 1,
        "conditions": [condition],
        "fabrics": [{"name": "ib", "nodes": 3, "gpus": 24, "problems": ["none"]}],
    }
    patch = ("--type=merge", f"--patch={json.dumps({'status': status})}")
    stored.kubectl("patch", STORED, "default", *patch)
    assert "status" not in get(stored)
    stored.kubectl("patch", STORED, "default", "--subresource=status", *patch)
    apply(stored, configuration())
    actual = get(stored)
    assert (actual["status"], actual["metadata"]["generation"]) == (status, 1)
    header, line = (row.split() for row in stored.kubectl("get", STORED).splitlines())
    assert header == ["NAME", "FABRICS", "NODES", "READY", "PROBLEMS", "AGE"]
    assert line[:5] == ["default", "ib", "3", "True", "1"]


def test_unknown_fields_survive(stored: Cluster) -> None:
    """The webhook can then name the right one; the API server would drop them silently."""
    fabric = {"name": "ib", "hcass": ["mlx5_0"], "qos": {"trafficclass": 1}, "match": {"gpus": 1}}
    given: dict[str, Any] = {
        "fabrics": [fabric],
        "default": {},
        "defaults": {"hcol": "auto"},
        "nvlink": {"a": 1},
    }
    apply(stored, configuration(**given))
    assert spec(stored) == given


def test_null_is_accepted(stored: Cluster) -> None:
    """Most fields may be null in a server-side apply, and choices in a client-side apply."""
    fabric = {"name": "ib", "sharedMemory": None, "hcas": None, "env": {"NCCL_DEBUG": None}}
    given: dict[str, Any] = {"fabrics": [fabric], "defaults": {"fabric": None}}
    apply(stored, configuration(**given), "--server-side")
    assert spec(stored) == given
    apply(stored, configuration(**given | {"defaults": {"memoryLimit": None}}))


def test_an_unquoted_off_is_accepted(stored: Cluster) -> None:
    """Read as false by kubectl, it is taken for `off` by the schema and the webhook."""
    text = configuration().replace("spec:\n", "spec:\n  defaults: {hcoll: off}\n")
    apply(stored, text)
    assert spec(stored)["defaults"] == {"hcoll": False}


def test_wrong_types_are_refused_at_their_paths(kind: Cluster) -> None:
    """The API server names each place, and a number or a boolean in `env` needs quotes."""
    fabric = {
        "name": "ib",
        "rateGbps": "fast",
        "hcas": "mlx5_0",
        "mode": "sriov",
        "env": {"NCCL_CROSS_NIC": 1, "NCCL_IB_DISABLE": False},
        "resources": [{"name": "rdma/ib", "count": 1.5}],
    }
    message = refused(kind, configuration("rdma.lab", fabrics=[fabric, {"name": "ib"}]))
    for place in (
        "rateGbps: Invalid value",
        "hcas: Invalid value",
        'mode: Unsupported value: "sriov"',
        "env.NCCL_CROSS_NIC: Invalid value",
        "env.NCCL_IB_DISABLE: Invalid value",
        "resources[0].count: Invalid value",
    ):
        assert f"spec.fabrics[0].{place}" in message
    assert "spec.fabrics[1]: Duplicate value" in message


def test_only_the_name_default_is_accepted(kind: Cluster) -> None:
    """An object of another name would have no effect."""
    message = refused(kind, configuration("rdma.lab", name="lab"))
    assert "metadata.name: Invalid value: " in message
    assert "must be default" in message


def test_fields_outside_spec_are_refused(kind: Cluster) -> None:
    """If the fields are at the top level, the message names their place."""
    document = yaml.safe_load(configuration("rdma.lab"))
    document |= document.pop("spec")
    message = refused(kind, json.dumps(document))
    assert "spec: Required value: defaults, nvlink, foreignNics and fabrics belong in it" in message


@pytest.fixture(params=["view", "edit", "admin"])
def reader(kind: Cluster, request: pytest.FixtureRequest) -> Iterator[str]:
    """Give a user one of Kubernetes' own ClusterRoles in the whole cluster; return its name.

    The user has the same name, so no right is left over from a role that was just taken away.
    """
    role = str(request.param)
    binding = ("clusterrolebinding", f"kind-test-{role}")
    kind.kubectl("create", *binding, f"--clusterrole={role}", f"--user={role}")
    yield role
    kind.kubectl("delete", *binding)


def test_the_usual_roles_include_the_configuration(kind: Cluster, reader: str) -> None:
    """A user with `view` reads it; one with `edit` or `admin` also writes it; neither its status.

    A controller adds the rules to these roles a moment after they are applied.
    """
    path = "/apis/rdma.lab/v1alpha1/fabricconfigurations"
    until(lambda: send(kind, "GET", path, user=reader).code == 200)
    writes = {"view": 403}.get(reader)
    # A name that the schema refuses: it is read only after the user's rights.
    document = yaml.safe_load(configuration("rdma.lab", name="other"))
    dry_run = f"{path}?dryRun=All"
    until(lambda: send(kind, "POST", dry_run, document, user=reader).code == (writes or 422))
    missing = f"{path}/missing?dryRun=All"
    assert send(kind, "DELETE", missing, user=reader).code == (writes or 404)
    merge = "application/merge-patch+json"
    status = send(kind, "PATCH", f"{path}/missing/status", {"status": {}}, merge, user=reader)
    assert status.code == 403


def test_the_largest_spec_fits_into_its_object(stored: Cluster) -> None:
    """Also of hundreds of fabrics, applied by two managers, with two copies and a status of each.

    etcd accepts at most 1.5 MiB, and `managedFields` is as large as the spec.
    """
    path = f"/apis/{GROUP}/v1alpha1/fabricconfigurations/default"
    fabrics = [
        {
            "name": f"f{number:04}",
            "match": {"gpuResources": [f"example.com/gpu-{number:04}"]},
            "resources": [{"name": f"rdma/hca_{number:04}"}],
            "hcas": ["mlx5_0", "mlx5_1"],
        }
        for number in range(1, 1200)
    ]
    specs = [{"fabrics": fabrics, "nvlink": {"allowNamespaces": [word]}} for word in ("a", "b")]
    size = len(json.dumps(specs[0], separators=(",", ":")))
    assert MAX_SPEC_BYTES * 0.9 < size <= MAX_SPEC_BYTES
    rows = [
        {
            "name": fabric["name"],
            "nodes": 0,
            "unavailableNodes": 0,
            "gpus": 0,
            "resources": [{"name": f"rdma/{fabric['name']}", "allocatable": 0, "nodes": 0}],
            "problems": ["no node belongs to the fabric"],
            "notes": [],
        }
        for fabric in fabrics
    ]
    for given in specs:
        for manager in ("first", "second"):
            body = {**yaml.safe_load(configuration()), "spec": given}
            change = f"{path}?fieldManager={manager}&force=true"
            assert send(stored, "PATCH", change, body, APPLY).code in (200, 201)
        status = {**yaml.safe_load(configuration()), "status": {"fabrics": rows}}
        del status["spec"]
        change = f"{path}/status?fieldManager=rdma-webhook&force=true"
        assert send(stored, "PATCH", change, status, APPLY).code == 200
        kept = [{"generation": 1, "config": "c", "spec": spec} for spec in specs]
        answer = send(stored, "PATCH", f"{path}/status", {"status": {"kept": kept}}, MERGE)
        assert (answer.code, len(answer.object["status"]["kept"])) == (200, 2)
