"""Tests of the IP interfaces that a container's peers can reach."""

from __future__ import annotations

import pytest

from tests.case_names import case_name
from webhook.model.fabric import ip_interfaces


@pytest.mark.parametrize(("interface", "interfaces"), [("eth0", ("eth0",)), (None, ()), ("lo", ())])
def test_the_fabrics_interface_is_taken(interface: str | None, interfaces: tuple[str, ...]) -> None:
    """Without the user's choice it is the fabric's, unless that reaches no other pod."""
    assert ip_interfaces(interface, {}) == interfaces


@pytest.mark.parametrize(
    ("written", "interfaces"),
    [
        ("eth1", ("eth1",)),
        ("=eth1", ("eth1",)),
        ("=br-ex", ("br-ex",)),
        ("=eth", ("eth",)),
        ("eth1,eth2", ("eth1", "eth2")),
        ("eth1,eth1", ("eth1",)),
        ("=eth1,lo", ("eth1",)),
        ("lo,eth1", ("eth1",)),
        ("eth", ("eth0",)),
        ("eth0", ("eth0",)),
        ("=eth1,net1,a1,b1,c1,d1,e1,f1", ("eth1", "net1", "a1", "b1", "c1", "d1", "e1", "f1")),
        ("=a1,b1,c1,d1,e1,f1,g1,h1,i1", ()),
        ("en", ()),
        ("eth1,en", ()),
        ("br-ex", ()),
        ("^docker0", ()),
        ("^=docker0", ()),
        ("=^docker0", ()),
        ("lo", ()),
        ("=lo", ()),
        ("", ()),
        ("=", ()),
        ("eth1,", ()),
        ("eth1:1", ()),
        ("eth*", ()),
        ("eth 1", ()),
        ("=" + "x" * 15, ("x" * 15,)),
        ("=" + "x" * 16, ()),
        (None, ()),
    ],
    ids=case_name,
)
def test_nccls_names_are_prefixes(written: str | None, interfaces: tuple[str, ...]) -> None:
    """A prefix counts if it surely is a whole name, or if the fabric's interface begins with it."""
    assert ip_interfaces("eth0", {"NCCL_SOCKET_IFNAME": written}) == interfaces


@pytest.mark.parametrize(
    ("written", "interfaces"),
    [
        ("eth1", ("eth1",)),
        ("br-ex", ("br-ex",)),
        ("eth", ("eth",)),
        ("lo", ()),
        ("", ()),
        ("$(IF)", ()),
    ],
)
def test_gloos_names_are_exact(written: str, interfaces: tuple[str, ...]) -> None:
    """GLOO_SOCKET_IFNAME has no prefixes; NCCL_SOCKET_IFNAME takes precedence over it."""
    user_env = {"GLOO_SOCKET_IFNAME": written}
    assert ip_interfaces("eth0", user_env) == interfaces
    assert ip_interfaces("eth0", {**user_env, "NCCL_SOCKET_IFNAME": "net1"}) == ("net1",)


def test_a_prefix_alone_tells_nothing_on_the_host() -> None:
    """Without an interface of the fabric, a prefix cannot be completed."""
    assert ip_interfaces(None, {"NCCL_SOCKET_IFNAME": "eth"}) == ()
    assert ip_interfaces(None, {"NCCL_SOCKET_IFNAME": "eth3"}) == ("eth3",)
