"""Tests of the denial of wrong annotations: everything wrong is in one answer."""

from __future__ import annotations

import pytest

from tests.builders import container, decide_on, decision_input, fabrics, gpu, pod
from tests.case_names import case_name
from webhook.decide.examine.annotation_values import check_annotations
from webhook.model.annotations import UserAnnotations
from webhook.model.decision import Denial
from webhook.model.fabric import build_configuration
from webhook.model.pod import Pod, PodManifest

FABRIC = "annotation rdma.lab/fabric names 'nort', but the fabrics are: v100-ib, h100-roce"
DEVICES = (
    "annotation rdma.lab/devices is 'two', but it must be a whole number of RDMA devices for each "
    "container, 0 for none"
)
CONTAINERS = "annotation rdma.lab/containers names {}, but the pod's containers are: {}"


def denial(manifest: PodManifest, annotations: UserAnnotations) -> tuple[str, str]:
    """Return the reason code and the message of a denial."""
    with pytest.raises(Denial) as raised:
        check_annotations(Pod(manifest), annotations, fabrics())
    return raised.value.reason.code, str(raised.value)


def test_an_unknown_fabric_is_denied() -> None:
    """The message lists the names that would do."""
    assert denial(pod(), UserAnnotations(fabric="nort")) == ("InvalidAnnotation", FABRIC)
    with pytest.raises(Denial, match="but the fabrics are: none"):
        check_annotations(Pod(pod()), UserAnnotations(fabric="x"), build_configuration(()))


@pytest.mark.parametrize("name", [None, "v100-ib"])
def test_a_pod_may_name_a_fabric_or_none(name: str | None) -> None:
    """Only a name of no fabric is wrong."""
    check_annotations(Pod(pod()), UserAnnotations(fabric=name), fabrics())


@pytest.mark.parametrize(
    ("manifest", "have"),
    [
        (pod(container("a"), initContainers=[container("setup")]), "setup, a"),
        (pod(container("a"), ephemeralContainers=[container("x")]), "a"),
        ({"spec": {}}, "none"),
    ],
    ids=case_name,
)
def test_an_unknown_container_is_denied(manifest: PodManifest, have: str) -> None:
    """The message lists the names that would do; ephemeral containers never do."""
    message = CONTAINERS.format("'x'", have)
    assert denial(manifest, UserAnnotations(containers=("x",))) == ("InvalidAnnotation", message)


def test_all_unknown_containers_are_named() -> None:
    """A known name next to them is right."""
    message = CONTAINERS.format("'x' and 'y'", "a")
    annotations = UserAnnotations(containers=("x", "a", "y"))
    assert denial(pod(container("a")), annotations)[1] == message
    check_annotations(Pod(pod(container("a"))), UserAnnotations(containers=("a",)), fabrics())


def test_all_wrong_annotations_are_in_one_answer() -> None:
    """So four mistakes take one round, also if the annotation that opts in is wrong."""
    wrong = {
        "rdma.lab/devices": "two",
        "rdma.lab/fabric": "nort",
        "rdma.lab/containers": "x",
    }
    others = [DEVICES, FABRIC, CONTAINERS.format("'x'", "trainer")]
    assert decide_on(pod(gpu(), annotations=wrong)).message == "; ".join(others)
    wrong["rdma.lab/enable"] = "yes"
    decision = decide_on(pod(gpu(), annotations=wrong), decision_input())
    enable = 'annotation rdma.lab/enable is \'yes\', but it must be "true" or "false"'
    assert decision.message == "; ".join([enable, *others])
    assert decision.reason.code == "InvalidAnnotation"
