"""The changes of the webhook, from the status, and the requests of the pod."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.diagnose.why.pods import (
    ASKED,
    chapter_findings,
    codes,
    explain,
    pod_in_cluster,
    pod_without_call,
    status,
)
from webhook.decide.mutations.nvlink.remap import wrapping
from webhook.diagnose.why.evidence import read_status
from webhook.diagnose.why.reasons import REASONS


def done(**fields: Any) -> list[tuple[str, str, str]]:
    """Return code, level and text of each finding."""
    container = {
        "name": "main",
        "command": [*wrapping(1), "train"],
        "env": [{"name": "OMPI_MCA_coll_hcoll_enable", "value": "0"}],
        "securityContext": {"capabilities": {"add": ["IPC_LOCK"]}},
    }
    pod = pod_in_cluster(status(**fields), spec={"containers": [container]})
    findings = chapter_findings(explain(pod), "applied")
    return [(finding.code, finding.level, finding.text) for finding in findings]


def test_what_was_applied() -> None:
    """Each mutation that was applied is listed with its summary."""
    assert done(applied=["ipc-lock", "hcoll"]) == [
        (
            "Applied",
            "ok",
            (
                "ipc-lock: applied (it adds the IPC_LOCK capability, which exempts root from the "
                "limit on locked memory (memlock))."
            ),
        ),
        ("Applied", "ok", "hcoll: applied (it switches HCOLL off in Open MPI)."),
    ]


def test_each_code_once() -> None:
    """The verdict's code is in the answer; `reason`, `skipped` and `warned` follow, each once."""
    findings = done(
        rdma="no",
        because="FabricUnknown",
        reason="NoTarget",
        skipped=["FabricUnknown", "NoTarget", "UserMount"],
        warned=["UserMount", "GuaranteedLost"],
    )
    assert [code for code, *_ in findings] == [
        "NothingApplied",
        "NoTarget",
        "UserMount",
        "GuaranteedLost",
    ]


def test_a_code_says_what_it_means_and_what_to_do() -> None:
    """The finding is the one in docs/reasons.md, and the remedy belongs to the code."""
    (finding,) = chapter_findings(
        explain(pod_in_cluster(status(warned=["GuaranteedLost"]))), "applied"
    )[1:]
    assert finding.text == (
        "Since the webhook removed the memory limit, the pod's QoS class is Burstable, not "
        "Guaranteed: the pod gets no exclusive CPUs and no NUMA-aligned memory."
    )
    assert (finding.level, finding.remedy) == ("unsure", REASONS["GuaranteedLost"][0].reason.remedy)


def test_a_code_of_several_mutations() -> None:
    """Only mutations that were not applied can have been skipped; unreportable rows are omitted."""
    meanings = {row.part: row.reason.meaning for row in REASONS["EnvFrom"]}
    everywhere = f"{meanings['env']} Or: {meanings['hcoll']} Or: {meanings['nvlink']}"
    assert done(skipped=["EnvFrom"])[1][2] == everywhere
    applied = ["env", "nvlink"]
    assert done(applied=applied, skipped=["EnvFrom"])[2][2] == meanings["hcoll"]
    meanings = {row.part: row.reason.meaning for row in REASONS["Present"]}
    listed = done(skipped=["Present"])[1][2]
    assert meanings["networks"] in listed
    assert meanings["hcoll"] not in listed


def test_a_status_of_another_version() -> None:
    """Unknown names are reported as unknown to this version."""
    first, second = done(applied=["magic"], skipped=["Sorcery"])
    assert first[2] == "magic: applied (this version of rdma-webhook does not know it)."
    assert second == (
        "UnknownCode",
        "unsure",
        "Sorcery: this version of rdma-webhook does not know this code.",
    )


def test_a_status_without_room() -> None:
    """Counts replace lists."""
    assert [finding[2] for finding in done(applied=4, skipped=2, warned=["NonRoot"])] == [
        "The webhook applied 4 mutations. The annotation has no room for their names.",
        "The annotation has no room for 2 more reasons.",
        (
            "The container runs as a user other than root, for whom IPC_LOCK has no effect; the "
            "memlock limit then depends on the node."
        ),
    ]


def test_an_unreadable_status_leaves_the_changes_unknown() -> None:
    """A status that cannot be read proves neither a call nor its absence, so not "nothing"."""
    explanation = explain(pod_in_cluster({**ASKED, "rdma.lab/status": "{"}))
    (finding,) = chapter_findings(explanation, "applied")
    assert (finding.code, finding.level, finding.text) == (
        "StatusUnreadable",
        "unsure",
        "Unknown: rdma.lab/status cannot be read.",
    )
    assert finding.remedy == explanation.answer.remedy


def test_nothing() -> None:
    """Nothing was done to a pod that the webhook was not called for."""
    assert [
        finding.text for finding in chapter_findings(explain(pod_without_call()), "applied")
    ] == ["Nothing, since the webhook was not called."]


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
    status_annotation = read_status(
        '{"rdma":"no","because":1,"fabric":null,"applied":{},"warned":[1,"A"]}'
    )
    assert status_annotation is not None
    assert status_annotation.model_dump() == {
        "rdma": "no",
        "verdict_reason": "",
        "assumption_reason": "",
        "fabric": "",
        "libraries": "",
        "config": "",
        "decision_reason": "",
        "applied": (),
        "skipped": (),
        "warned": ("A",),
    }


def requests(**fields: Any) -> list[str]:
    """Return the findings on the requests of a pod."""
    return [
        finding.text for finding in chapter_findings(explain(pod_in_cluster(**fields)), "requested")
    ]


def test_what_was_asked_for() -> None:
    """The annotations, and the requests of each container beyond CPU and memory."""
    annotations = {
        **status(applied=["rdma-resources"]),
        "rdma.lab/fabric": 'v100"ib',
        "rdma.lab/nccl-conf": "ours",
        "other": "x",
    }
    limits = {"cpu": "4", "nvidia.com/v100": "4", "rdma/rdma_v100": "1", "rdma/none": "0"}
    assert requests(annotations=annotations, limits=limits) == [
        'The pod sets rdma.lab/enable: "true", rdma.lab/fabric: "v100\\"ib".',
        (
            "Container main requests nvidia.com/v100: 4, rdma/rdma_v100: 1 (the webhook "
            "added the RDMA resource)."
        ),
    ]


def test_nothing_was_asked_for() -> None:
    """There are findings on the absence of annotations and requests."""
    assert requests(annotations={}) == [
        "The pod has no annotation rdma.lab/enable.",
        "No container requests a GPU, an RDMA resource or another device.",
    ]


def test_own_resources() -> None:
    """A resource from the user is not attributed to the webhook."""
    assert requests(annotations=ASKED, limits={"rdma/rdma_v100": "1"})[1:] == [
        "Container main requests rdma/rdma_v100: 1."
    ]
    assert requests(annotations=status(applied=3), limits={"rdma/a": "1"})[1:] == [
        "Container main requests rdma/a: 1."
    ]


def test_resources_of_any_shape() -> None:
    """A file may contain anything."""
    shapes: list[Any] = [None, [], {"limits": []}, {"limits": {"rdma/a": {}}}]
    for resources in shapes:
        container = {"name": "main", "resources": resources}
        pod = pod_in_cluster(spec={"containers": [container, "x"], "initContainers": "x"})
        assert codes(explain(pod), "requested")[0] == "Annotations"
