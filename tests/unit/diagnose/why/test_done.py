"""What the webhook did, by the status, and what the pod asked for."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.diagnose.why.pods import ASKED, codes, explain, live, status, told, unseen
from webhook.diagnose.codes import CODE_ROWS
from webhook.diagnose.remedies import REMEDIES
from webhook.diagnose.why.evidence import read_status


def done(**said: Any) -> list[tuple[str, str, str]]:
    """Return code, level and text of each sentence."""
    found = told(explain(live(status(**said))), "done")
    return [(one.code, one.level, one.text) for one in found]


def test_what_was_applied() -> None:
    """Each mutation that was applied is listed with its summary."""
    assert done(applied=["ipc-lock", "hcoll"]) == [
        (
            "Applied",
            "good",
            "ipc-lock: adds the IPC_LOCK capability, without which registering memory fails.",
        ),
        ("Applied", "good", "hcoll: switches off Open MPI's hcoll."),
    ]


def test_each_code_once() -> None:
    """The verdict's code is in the answer; `reason`, `skipped` and `warned` follow, each once."""
    found = done(
        rdma="no",
        because="FabricUnknown",
        reason="NoTarget",
        skipped=["FabricUnknown", "NoTarget", "UserMount"],
        warned=["UserMount", "GuaranteedLost"],
    )
    assert [code for code, *_ in found] == [
        "NothingApplied",
        "NoTarget",
        "UserMount",
        "GuaranteedLost",
    ]


def test_a_code_says_what_it_means_and_what_to_do() -> None:
    """The sentence is that of docs/reasons.md, and the remedy that of the code."""
    (found,) = told(explain(live(status(warned=["GuaranteedLost"]))), "done")[1:]
    assert found.text == (
        "GuaranteedLost: Without it the pod is Burstable: no exclusive CPUs, no NUMA memory."
    )
    assert (found.level, found.remedy) == ("unsure", REMEDIES["GuaranteedLost"])


def test_a_code_of_several_mutations() -> None:
    """Only mutations that were not applied can have been skipped, and quiet rows are not listed."""
    whens = {row.part: row.when for row in CODE_ROWS if row.code == "EnvFrom"}
    everywhere = f"EnvFrom: {whens['env']} Or: {whens['hcoll']} Or: {whens['nvlink']}"
    assert done(skipped=["EnvFrom"])[1][2] == everywhere
    applied = ["env", "nvlink"]
    assert done(applied=applied, skipped=["EnvFrom"])[2][2] == f"EnvFrom: {whens['hcoll']}"
    mount = "UserMount: The user mounts /etc/nccl.conf, or a directory above it."
    assert done(skipped=["UserMount"])[1][2] == mount


def test_a_status_of_another_version() -> None:
    """What this version does not know is said to be so."""
    first, second = done(applied=["magic"], skipped=["Sorcery"])
    assert first[2] == "magic: not known to this version of rdma-webhook."
    assert second == (
        "Sorcery",
        "unsure",
        "Sorcery: not known to this version of rdma-webhook.",
    )


def test_a_status_without_room() -> None:
    """Counts stand for lists."""
    assert [one[2] for one in done(applied=4, skipped=2, warned=["NonRoot"])] == [
        "It applied 4 mutations; the annotation has no room for their names.",
        "2 more reasons, for which the annotation has no room.",
        "NonRoot: IPC_LOCK has no effect for a user other than root; the node must raise memlock.",
    ]


def test_nothing() -> None:
    """Nothing was done to a pod that was not seen."""
    assert [one.text for one in told(explain(unseen()), "done")] == ["Nothing."]


@pytest.mark.parametrize(
    "written",
    ["", "x", "[]", "{}", '{"rdma":"green"}', "[" * 100_000, '{"rdma":["yes"]}'],
    ids=lambda text: text[:20],
)
def test_what_is_no_status(written: str) -> None:
    """Anything but an object with a verdict counts as missing."""
    assert read_status(written) is None


def test_fields_of_any_type() -> None:
    """A field with a wrong type counts as empty."""
    found = read_status('{"rdma":"no","because":1,"fabric":null,"applied":{},"warned":[1,"A"]}')
    assert found is not None
    assert found.model_dump() == {
        "rdma": "no",
        "because": "",
        "fabric": "",
        "reason": "",
        "applied": (),
        "skipped": (),
        "warned": ("A",),
    }


def asked(**more: Any) -> list[str]:
    """Return what the pod asked for."""
    return [one.text for one in told(explain(live(**more)), "asked")]


def test_what_was_asked_for() -> None:
    """Annotations, and what each container requests beyond CPU and memory."""
    annotations = {
        **status(applied=["rdma-resources"]),
        "rdma.lab/fabric": 'v100"ib',
        "rdma.lab/nccl-conf": "ours",
        "other": "x",
    }
    limits = {"cpu": "4", "nvidia.com/v100": "4", "rdma/rdma_v100": "1", "rdma/none": "0"}
    assert asked(annotations=annotations, limits=limits) == [
        'The pod has rdma.lab/enable: "true", rdma.lab/fabric: "v100\\"ib".',
        (
            "Container main requests nvidia.com/v100: 4, rdma/rdma_v100: 1 (the webhook "
            "wrote the RDMA "
            "resource)."
        ),
    ]


def test_nothing_was_asked_for() -> None:
    """That is said in words."""
    assert asked(annotations={}) == [
        "The pod has no annotation rdma.lab/enable.",
        "No container requests a GPU, an RDMA resource or another device.",
    ]


def test_own_resources() -> None:
    """A resource that the user wrote is not said to be ours."""
    assert asked(annotations=ASKED, limits={"rdma/rdma_v100": "1"})[1:] == [
        "Container main requests rdma/rdma_v100: 1."
    ]
    assert asked(annotations=status(applied=3), limits={"rdma/a": "1"})[1:] == [
        "Container main requests rdma/a: 1."
    ]


def test_resources_of_any_shape() -> None:
    """A file may contain anything."""
    shapes: list[Any] = [None, [], {"limits": []}, {"limits": {"rdma/a": {}}}]
    for resources in shapes:
        container = {"name": "main", "resources": resources}
        pod = live(spec={"containers": [container, "x"], "initContainers": "x"})
        assert codes(explain(pod), "asked")[0] == "Annotations"
