from __future__ import annotations

from typing import Any

import pytest

from tests.builders import decide_on, decision_input, defaulted, fabric, gpu, ops, outcomes_of, pod
from tests.case_names import case_name
from webhook.model.decision import Decision
from webhook.model.fabric import RdmaResource
from webhook.model.facts import NamespaceFacts
from webhook.model.pod import PodManifest

NAME = "networks"
KEY = "k8s.v1.cni.cncf.io/networks"
GPU = frozenset({"nvidia.com/v100"})
STORAGE = fabric(gpu_resources=GPU, networks=("infra/storage", "local@net9"))
RAILS = fabric(
    gpu_resources=GPU,
    resources=(
        RdmaResource(name="nvidia.com/rail0", count=None, network="infra/rail0@net1"),
        RdmaResource(name="nvidia.com/rail1", network="infra/rail1"),
        RdmaResource(name="rdma/shared"),
    ),
)


def attached(written: Any = None, *containers: dict[str, Any], **spec: Any) -> PodManifest:
    """Make a pod with its own networks annotation."""
    return pod(*containers, annotations={} if written is None else {KEY: written}, **spec)


def annotation(decision: Decision) -> Any:
    """Return the networks annotation after the decision."""
    return decision.pod["metadata"]["annotations"].get(KEY)


def test_a_fabric_without_networks_adds_none() -> None:
    """The status does not mention it either."""
    decision = decide_on(attached("mine"))
    assert outcomes_of(decision, NAME) == [
        ("", "skipped", "NotConfigured", "the fabric has no network to attach to the pod")
    ]
    assert annotation(decision) == "mine"


def test_a_host_network_pod_is_left_alone() -> None:
    """Multus adds no networks there, so they are skipped with a reason."""
    decision = decide_on(attached(hostNetwork=True), decision_input(STORAGE))
    assert outcomes_of(decision, NAME) == [
        (
            "",
            "skipped",
            "HostNetwork",
            "the pod has hostNetwork: true, so no networks can be attached to it",
        )
    ]
    assert annotation(decision) is None
    status = decision.pod["metadata"]["annotations"]["rdma.lab/status"]
    assert '"skipped":["HostNetwork"]' in status


@pytest.mark.parametrize(
    "written",
    [
        "infra/storage,local",
        "local@eth5, other, infra/storage@x",
        "lab/local,infra/storage",
        '[{"name":"storage","namespace":"infra"},{"name":"local"}]',
    ],
)
def test_the_pod_may_be_attached_already(written: str) -> None:
    """Names are compared with the default namespace filled in, and without interfaces."""
    decision = decide_on(attached(written), decision_input(STORAGE))
    assert outcomes_of(decision, NAME) == [
        ("", "already", "Present", "the pod is already attached to all of the fabric's networks")
    ]
    assert ops(decision, NAME) == []


@pytest.mark.parametrize("written", ["[1,2]", "{}", '[{"name":"a"}] and more', '"a"'])
def test_what_cannot_be_read_is_left_alone(written: str) -> None:
    """It is skipped with a reason; the pod cannot start anyway."""
    decision = decide_on(attached(written), decision_input(STORAGE))
    assert outcomes_of(decision, NAME) == [
        (
            "",
            "skipped",
            "Unreadable",
            f"annotation {KEY} is neither a comma-separated list nor JSON",
        )
    ]
    assert annotation(decision) == written


@pytest.mark.parametrize(
    ("written", "kind", "appended", "result"),
    [
        (None, "add", "infra/storage, local@net9", "infra/storage,local@net9"),
        ("", "replace", "infra/storage, local@net9", "infra/storage,local@net9"),
        ("mine", "replace", "infra/storage, local@net9", "mine,infra/storage,local@net9"),
        ("local", "replace", "infra/storage", "local,infra/storage"),
        ("other/local", "replace", "infra/storage, local@net9", None),
        (
            '[ {"name": "storage", "namespace": "infra"} ]',
            "replace",
            "local@net9",
            '[ {"name": "storage", "namespace": "infra"},{"name":"local","interface":"net9"}]',
        ),
    ],
    ids=case_name,
)
def test_missing_networks_are_appended(
    written: str | None, kind: str, appended: str, result: str | None
) -> None:
    """They are written in the existing form, and the user's entries stay."""
    decision = decide_on(attached(written), decision_input(STORAGE))
    value = result or f"{written},infra/storage,local@net9"
    assert outcomes_of(decision, NAME) == [("", "applied", "Appended", f"appended {appended}")]
    assert ops(decision, NAME) == [
        {"op": kind, "path": "/metadata/annotations/k8s.v1.cni.cncf.io~1networks", "value": value}
    ]


@pytest.mark.parametrize(
    ("namespace", "pod_namespace", "code"),
    [
        ("lab", "other", "Present"),
        ("", "lab", "Present"),
        ("", None, "Appended"),
        ("", 5, "Appended"),
    ],
)
def test_the_requests_namespace_counts(namespace: str, pod_namespace: Any, code: str) -> None:
    """A pod in a review may have no namespace; if the request has none either, it is `default`."""
    manifest = attached("lab/local,infra/storage")
    manifest["metadata"]["namespace"] = pod_namespace
    decision = decide_on(
        manifest, decision_input(STORAGE, namespace=NamespaceFacts(name=namespace))
    )
    assert outcomes_of(decision, NAME)[0][2] == code


@pytest.mark.parametrize(
    ("written", "gpus", "result"),
    [
        (None, 1, "infra/rail0@net1,infra/rail1"),
        (None, 3, "infra/rail0@net1,infra/rail0,infra/rail0,infra/rail1"),
        ("infra/rail0@net7", 2, "infra/rail0@net7,infra/rail0,infra/rail1"),
        ("infra/rail0,infra/rail0,infra/rail1", 2, "infra/rail0,infra/rail0,infra/rail1"),
    ],
    ids=case_name,
)
def test_a_resources_network_comes_once_for_each_device(
    written: str | None, gpus: int, result: str
) -> None:
    """The count may be the user's; only the first network can have the interface's name."""
    decision = decide_on(attached(written, gpu(count=gpus)), decision_input(RAILS))
    assert annotation(decision) == result


def test_the_devices_of_all_targets_count() -> None:
    """They share the pod's network."""
    two = attached(None, gpu("a"), gpu("b", limits={"nvidia.com/rail1": "2"}))
    decision = decide_on(two, decision_input(RAILS))
    assert annotation(decision) == "infra/rail0@net1,infra/rail1,infra/rail1,infra/rail1"


@pytest.mark.parametrize("count", ["0", 0, None], ids=repr)
def test_no_device_needs_no_network(count: Any) -> None:
    """The user requested none."""
    manifest = attached(None, gpu(limits={"nvidia.com/rail0": count}))
    assert annotation(decide_on(manifest, decision_input(RAILS))) is None


@pytest.mark.parametrize("count", ["257", "1k", "1e9", "9e18", 10**18], ids=repr)
def test_absurdly_many_devices_get_no_networks(count: Any) -> None:
    """Such a list would use up the memory, and no node has that many devices."""
    manifest = attached(None, gpu(limits={"nvidia.com/rail0": count}))
    decision = decide_on(manifest, decision_input(RAILS))
    assert outcomes_of(decision, NAME) == [
        (
            "",
            "skipped",
            "TooManyDevices",
            (
                "the pod needs one network per device, but requests more than 256 devices, so the "
                "webhook appended no networks"
            ),
        )
    ]


def test_an_annotation_of_another_type_denies_the_pod() -> None:
    """The API server would reject it too."""
    decision = decide_on(attached(["a"]), decision_input(STORAGE))
    assert (decision.allowed, decision.message) == (
        False,
        (
            'metadata.annotations["k8s.v1.cni.cncf.io/networks"] must be a string, '
            "but is a list (['a'])"
        ),
    )


@pytest.mark.parametrize("written", [None, "mine", '[{"name":"mine"}]', "[1]"], ids=repr)
@pytest.mark.parametrize("member", [STORAGE, RAILS], ids=("storage", "rails"))
def test_deciding_again_changes_nothing(member: Any, written: str | None) -> None:
    """The second call finds all networks in place."""
    first = decide_on(attached(written, gpu(count=4)), decision_input(member))
    assert decide_on(defaulted(first.pod), decision_input(member)).patch == ()


INTERFACES = "networking.gke.io/interfaces"
CLOUD = fabric(
    gpu_resources=GPU,
    annotations={"networking.gke.io/default-interface": "eth0", INTERFACES: "[1]"},
)


def test_annotations_of_a_cloud_are_added() -> None:
    """The user's annotations stay, whatever their values."""
    cluster = decision_input(CLOUD)
    decision = decide_on(pod(annotations={INTERFACES: "mine"}), cluster)
    assert outcomes_of(decision, NAME) == [
        ("", "applied", "Annotated", "added annotation networking.gke.io/default-interface")
    ]
    annotations = decision.pod["metadata"]["annotations"]
    assert annotations["networking.gke.io/default-interface"] == "eth0"
    assert annotations[INTERFACES] == "mine"
    again = decide_on(decision.pod, cluster)
    assert [outcome[1:3] for outcome in outcomes_of(again, NAME)] == [("already", "Present")]
    (outcome,) = outcomes_of(decide_on(pod(hostNetwork=True), cluster), NAME)
    assert outcome[1:3] == ("skipped", "HostNetwork")


def test_annotations_next_to_networks() -> None:
    """One outcome names both; an unreadable list of networks stops both."""
    cluster = decision_input(fabric(gpu_resources=GPU, networks=("a",), annotations={"b/c": "d"}))
    decision = decide_on(attached("x"), cluster)
    assert outcomes_of(decision, NAME) == [
        ("", "applied", "Annotated", "appended a; added annotation b/c")
    ]
    assert annotation(decision) == "x,a"
    (outcome,) = outcomes_of(decide_on(attached("{"), cluster), NAME)
    assert outcome[2] == "Unreadable"


def test_annotations_need_room() -> None:
    """The API server rejects a pod with more than 256 KiB of annotations."""
    full = pod(annotations={"a": "x" * (256 * 1024 - 5000)})
    large = fabric(gpu_resources=GPU, annotations={"b/c": "x" * 1000})
    (outcome,) = outcomes_of(decide_on(full, decision_input(large)), NAME)
    assert outcome[1:3] == ("skipped", "AnnotationsTooLarge")
    small = fabric(gpu_resources=GPU, annotations={"b/c": "x"})
    (outcome,) = outcomes_of(decide_on(full, decision_input(small)), NAME)
    assert outcome[1:3] == ("applied", "Annotated")
