"""Whether NCCL_SOCKET_IFNAME matches an interface of the pod."""

from __future__ import annotations

from typing import Any

import pytest

from tests.builders import env, gpu
from tests.unit.diagnose.why.pods import chapter_findings, codes, explain, pod_in_cluster, status
from tests.unit.diagnose.why.test_comparison import KNOWN_CONFIGURATION, equipped, explain_with
from webhook.diagnose.why.evidence import ContainerProcesses
from webhook.diagnose.why.explanation import Explanation

PRESENT = ("eth0", "lo", "net1")


def with_interfaces(
    value: str | None, interfaces: tuple[str, ...] = PRESENT, **fields: Any
) -> Explanation:
    """Explain an equipped pod whose container has this value, and a shell in it."""
    pod = pod_in_cluster(status(**fields), limits={"rdma/a": "1"})
    variables = {} if value is None else {"NCCL_SOCKET_IFNAME": value}
    pod["spec"]["containers"][0]["env"] = env(**variables)
    return explain(pod, processes=(ContainerProcesses("main", interfaces=interfaces),))


@pytest.mark.parametrize(
    ("value", "is_missing"),
    [
        ("eth0", False),
        ("eth", False),
        ("=eth0", False),
        ("=eth", True),
        ("bond0", True),
        ("bond0,net", False),
        ("bond0,eth0:1234", False),
        ("^lo", False),
        ("^lo,eth,net", True),
        ("^=lo,eth0", False),
        ("^=lo,eth0,net1", True),
        ("=", False),
        ("", False),
        (None, False),
    ],
)
def test_an_interface_must_match(value: str | None, is_missing: bool) -> None:
    """By prefix, by its name after `=`, or by not being listed after `^`."""
    explanation = with_interfaces(value)
    assert (explanation.rdma == "no") is is_missing
    findings = chapter_findings(explanation, "processes")
    codes = [finding.code for finding in findings]
    assert ("SocketInterfaceMissing" in codes) is is_missing


def test_the_answer_names_the_interfaces() -> None:
    """With the remedy of the fabric's administrator."""
    answer = with_interfaces("bond0").answer
    assert answer.text == (
        "No RDMA: in container main, NCCL_SOCKET_IFNAME=bond0 matches none of the network "
        "interfaces (eth0, lo, net1), so NCCL fails when it starts."
    )
    assert answer.remedy.startswith("If the variable has the fabric's value, ask the cluster")


def test_interfaces_that_are_not_known() -> None:
    """A shell without /sys shows none."""
    assert with_interfaces("bond0", ()).rdma == "yes"


def test_the_libraries_that_the_variable_is_for() -> None:
    """Others do not read it; the finding remains."""
    explanation = with_interfaces("bond0", libraries="NIXL")
    assert explanation.rdma == "yes"
    assert with_interfaces("bond0", libraries="NIXL,NCCL").rdma == "no"
    assert chapter_findings(explanation, "processes")[0].code == "SocketInterfaceMissing"


def test_the_containers_that_count() -> None:
    """They equal the interfaces of the verdict."""
    socket = {"env": env(NCCL_SOCKET_IFNAME="bond0")}
    pod = equipped(gpu("a"), {"name": "proxy", "image": "x", **socket})
    shells = [ContainerProcesses(name, interfaces=PRESENT) for name in ("a", "proxy")]
    explanation = explain_with(pod, KNOWN_CONFIGURATION, processes=shells)
    assert "SocketInterfaceMissing" not in codes(explanation, "processes")
    chosen = equipped(gpu("a", **socket))
    assert explain_with(chosen, KNOWN_CONFIGURATION, processes=shells[:1]).rdma == "no"
