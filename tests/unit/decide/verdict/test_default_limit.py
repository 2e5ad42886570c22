"""A memory limit that a LimitRange gave to a container, and that the webhook keeps."""

from __future__ import annotations

from typing import Any

import pytest

from tests.builders import container, decision_input, gpu, pod
from tests.unit.decide.verdict.judging import judged, verdict_on
from webhook.model.facts import NamespaceFacts
from webhook.model.pod import PodManifest

REJECTION = "LimitRange bounds sets max.memory"
REQUIRED = decision_input(namespace=NamespaceFacts(name="lab", memory_limit_rejection=REJECTION))
SET = "LimitRanger plugin set: cpu, memory request for container trainer; {} container trainer"
LIMIT = SET.format("cpu, memory limit for")
EQUIPPED, DOUBTED = ("yes", "Equipped"), ("unsure", "DefaultMemoryLimit")


def limited(annotation: str | None = LIMIT, limit: Any = "4Gi", **annotations: str) -> PodManifest:
    """Return a pod with a memory limit, and with what LimitRanger recorded."""
    recorded = {} if annotation is None else {"kubernetes.io/limit-ranger": annotation}
    written = {f"rdma.lab/{key.replace('_', '-')}": value for key, value in annotations.items()}
    return pod(gpu("trainer", limits={"memory": limit}), annotations={**recorded, **written})


@pytest.mark.parametrize(
    ("manifest", "expected"),
    [
        (limited(), DOUBTED),
        (limited(SET.format("memory limit for")), DOUBTED),
        (limited(None), EQUIPPED),
        (limited(""), EQUIPPED),
        (limited(SET.format("cpu limit for")), EQUIPPED),
        (limited("LimitRanger plugin set: memory request for container trainer"), EQUIPPED),
        (limited("LimitRanger plugin set: memory limit for container other"), EQUIPPED),
        (limited("LimitRanger plugin set: memory limit for init container trainer"), EQUIPPED),
        (limited(memory_limit="keep"), EQUIPPED),
        (limited(skip="memory-limit"), EQUIPPED),
        (limited(skip="hcoll"), DOUBTED),
        (limited(limit="0"), EQUIPPED),
        (pod(annotations={"kubernetes.io/limit-ranger": LIMIT}), EQUIPPED),
    ],
    ids=str,
)
def test_only_a_limit_that_nobody_chose(manifest: PodManifest, expected: tuple[str, str]) -> None:
    """A limit that the user wrote, or keeps explicitly, is the user's choice."""
    assert judged(manifest, REQUIRED) == expected


def test_the_message() -> None:
    """It names the container, the value and the LimitRange, and fits into a warning."""
    message = f"container trainer keeps its default limit of 4Gi, since {REJECTION}"
    assert verdict_on(limited(), REQUIRED).message == message
    assert len(f"rdma.lab: RDMA not certain: {message}") <= 120
    keep_limits = decision_input(defaults={"memory_limit": "keep"})
    assert verdict_on(limited(), keep_limits).message == (
        "container trainer keeps the default memory limit 4Gi of a LimitRange"
    )


def test_a_limit_that_is_removed() -> None:
    """Where the namespace does not require one, the webhook removes it, and the annotation lies."""
    assert judged(limited()) == EQUIPPED


def test_an_init_container() -> None:
    """LimitRanger calls it by another name; a sidecar is one, too."""
    setup = gpu("setup", limits={"memory": "4Gi", "rdma/v100": "1"})
    recorded = "LimitRanger plugin set: memory limit for {} setup"
    annotations = {"rdma.lab/containers": "setup"}
    for kind, expected in (("init container", DOUBTED), ("container", EQUIPPED)):
        annotations["kubernetes.io/limit-ranger"] = recorded.format(kind)
        manifest = pod(container("main"), annotations=annotations, initContainers=[setup])
        assert judged(manifest, REQUIRED) == expected
