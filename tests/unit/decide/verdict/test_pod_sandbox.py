from __future__ import annotations

import pytest

from tests.builders import pod
from tests.unit.decide.verdict.judging import judged, verdict_on


def test_gvisor_has_no_rdma() -> None:
    """Its kernel has no RDMA device, regardless of the container's devices."""
    verdict = verdict_on(pod(runtimeClassName="gvisor"))
    assert (verdict.rdma, verdict.because.code) == ("no", "GvisorSandbox")
    assert (
        verdict.message
        == "runtimeClassName gvisor is gVisor, which has no RDMA devices; remove runtimeClassName"
    )


def test_kata_may_have_rdma() -> None:
    """A NIC may be passed through, which no field of a pod shows."""
    verdict = verdict_on(pod(runtimeClassName="kata-qemu"))
    assert (verdict.rdma, verdict.because.code) == ("unsure", "KataSandbox")
    assert verdict.message == (
        "runtimeClassName kata-qemu is Kata, where only a passed-through NIC works"
    )


@pytest.mark.parametrize("name", ["nvidia", "runc", ""])
def test_other_runtimes_do_not_matter(name: str) -> None:
    """They run containers on the node's kernel."""
    assert judged(pod(runtimeClassName=name)) == ("yes", "Equipped")
