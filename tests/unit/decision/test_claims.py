from __future__ import annotations

from typing import Any

import pytest

from tests.builders import container, pod
from tests.case_names import case_name
from webhook.decision.claims import claims_of
from webhook.pod.manifest import containers_of


def found(listed: Any, *used: dict[str, str]) -> list[tuple[str, str | None, str]]:
    """List the claims of a pod with one container: name, user, and what it is said to be."""
    manifest = pod(container(resources={"claims": list(used)}), resourceClaims=listed)
    return [
        (
            one.name,
            one.user and one.user.name,
            "".join((one.is_gpu * "G", one.is_nic * "N", one.is_domain * "D")),
        )
        for one in claims_of(manifest, containers_of(manifest))
    ]


@pytest.mark.parametrize(
    ("words", "device"),
    [
        ("gpu", "G"),
        ("my-GPUs", "G"),
        ("mig-1g-5gb", "G"),
        ("migration", ""),
        ("my-RDMA-nic", "N"),
        *((word, "N") for word in ("nic", "nics-0", "nic0", "rdmanet", "roce2", "mlx5-vf", "efa")),
        *((word, "N") for word in ("sriov", "ib", "hca-1", "rail0", "infiniband", "dranet-0")),
        ("gpu-nic-pair", "GN"),
        *((word, "") for word in ("default", "unicorn", "technical", "fast", "library", "trail")),
        ("default-gpu", "G"),
        ("compute-domain-channel", "D"),
        ("imex-channel-0", "D"),
        ("computedomain-gpu-nic", "D"),
    ],
    ids=case_name,
)
def test_names_say_what_a_claim_is(words: str, device: str) -> None:
    """Short words count only if they stand alone; any of the names may say it."""
    assert found([{"name": words}], {"name": words}) == [(words, "trainer", device)]
    for key in ("resourceClaimName", "resourceClaimTemplateName"):
        assert found([{"name": "x", key: words}], {"name": "x"}) == [("x", "trainer", device)]
    assert found([{"name": "x"}], {"name": "x", "request": words}) == [("x", "trainer", device)]


@pytest.mark.parametrize(
    ("words", "device"), [("fast", "N"), ("rdma", "N"), ("gpu", "G"), ("imex", "D")], ids=case_name
)
def test_a_claim_that_no_container_uses_is_a_networks(words: str, device: str) -> None:
    """A driver moves its NIC into the pod; a GPU would reach no container."""
    assert found([{"name": "x", "resourceClaimName": words}]) == [("x", None, device)]


def test_each_use_is_listed_and_then_what_nobody_uses() -> None:
    """A claim that the pod does not list does not count, and a request belongs to one use."""
    listed = [{"name": "b"}, {"name": "a"}, {}]
    used = [{"name": "a", "request": "gpu"}, {"name": "a", "request": "nic"}, {"name": "z"}]
    assert found(listed, *used) == [
        ("a", "trainer", "G"),
        ("a", "trainer", "N"),
        ("b", None, "N"),
        ("", None, "N"),
    ]


@pytest.mark.parametrize("listed", [None, []], ids=case_name)
def test_most_pods_have_none(listed: Any) -> None:
    """Nothing is read of their containers."""
    assert found(listed, {"name": "gpu"}) == []
