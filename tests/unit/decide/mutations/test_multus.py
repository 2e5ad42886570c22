from __future__ import annotations

import pytest

from webhook.decide.mutations.networks import (
    append_networks,
    networks_of,
    qualify,
    without_clashes,
)


@pytest.mark.parametrize(
    ("written", "networks"),
    [
        ("", []),
        ("  ", []),
        (",", []),
        ("rail0", ["lab/rail0"]),
        ("rail0, other/rail1@net1 ,rail0", ["lab/rail0", "other/rail1", "lab/rail0"]),
        ("[]", []),
        (' [ {"name": "rail0"} ]', ["lab/rail0"]),
        (
            '[{"name":"a","namespace":"other","interface":"net1"},{"name":"b","namespace":""}]',
            ["other/a", "lab/b"],
        ),
    ],
)
def test_both_forms_are_read(written: str, networks: list[str]) -> None:
    """Names get the pod's namespace if they have none; interfaces are ignored."""
    assert networks_of(written, "lab") == networks


@pytest.mark.parametrize(
    "written",
    [
        "[1,2]",
        "{}",
        '{"name": "a"}',
        '"rail0"',
        "[",
        '[{"name": "a"}] and more',
        '[{"name": 5}]',
        '[{"namespace": "lab"}]',
        "[null]",
        "a,[b]",
        '["\ud800"]',
        "[" * 5000,
    ],
)
def test_what_multus_cannot_read_is_left_alone(written: str) -> None:
    """Multus reads a text with a bracket, a brace or a quote as JSON."""
    assert networks_of(written, "lab") is None


@pytest.mark.parametrize(
    ("network", "name"),
    [("a", "lab/a"), (" a@net1", "lab/a"), ("x/a", "x/a"), ("x/a@net1 ", "x/a")],
)
def test_a_network_is_named_with_its_namespace(network: str, name: str) -> None:
    """The interface is left out of the name."""
    assert qualify(network, "lab") == name


@pytest.mark.parametrize(
    ("written", "result"),
    [
        ("", "x/a@net1,b"),
        (" ", "x/a@net1,b"),
        ("c", "c,x/a@net1,b"),
        ("c@net0 , d ", "c@net0 , d,x/a@net1,b"),
        ("c,", "c,x/a@net1,b"),
        ("[]", '[{"name":"a","namespace":"x","interface":"net1"},{"name":"b"}]'),
        (
            '[ {"name": "c", "ips": ["10.0.0.1"]} ] ',
            (
                '[ {"name": "c", "ips": ["10.0.0.1"]},'
                '{"name":"a","namespace":"x","interface":"net1"},{"name":"b"}]'
            ),
        ),
    ],
)
def test_networks_are_appended_in_the_form_that_is_there(written: str, result: str) -> None:
    """The user's entries stay in front, byte for byte."""
    assert append_networks(written, ["x/a@net1", "b"]) == result


@pytest.mark.parametrize(
    ("written", "count", "result"),
    [
        ("", 0, "ns/rail@net1"),
        ("storage", 1, "ns/rail"),
        ("storage@eth9", 1, "ns/rail"),
        ("a@net1", 1, "ns/rail"),
        ('[{"name":"a","interface":"net1"}]', 1, "ns/rail"),
    ],
)
def test_an_interface_name_that_may_be_taken_is_left_out(
    written: str, count: int, result: str
) -> None:
    """Multus names other networks net1, net2, …; a pod with two of one name does not start."""
    assert without_clashes(["ns/rail@net1"], written, count) == [result]
    assert without_clashes(["ns/rail"], written, count) == ["ns/rail"]


@pytest.mark.parametrize(
    ("networks", "count", "result"),
    [
        ("a@net1 b@net2", 0, "a@net1 b@net2"),
        ("a@net2 b@net1", 0, "a@net2 b@net1"),
        ("a@net2 b", 0, "a b"),
        ("a a b@net2", 0, "a a b"),
        ("a b@net3 c@net2 d@net4", 0, "a b@net3 c@net2 d@net4"),
        ("a@net1 b@net2 c@net3 d@net9", 1, "a b c d@net9"),
        ("a@net1 b@net2 c@net3", 2, "a b c"),
        ("a@eth2 b", 1, "a@eth2 b"),
        ("a@net10 b@net14", 11, "a b@net14"),
        ("a@net10 b@net01 c@net1x", 1, "a@net10 b@net01 c@net1x"),
    ],
)
def test_no_two_networks_get_one_interface(networks: str, count: int, result: str) -> None:
    """Multus names a network by its position, also one whose `@interface` was left out.

    After one network of the user, rails that are to be net1 and net2 become net2 and net3.
    """
    written = ",".join(["mine"] * count)
    assert without_clashes(networks.split(), written, count) == result.split()


@pytest.mark.parametrize("written", ["mine@eth9", '[{"name":"mine","interface":"eth9"}]'])
def test_a_network_without_its_interface_gets_another(written: str) -> None:
    """The user's network has eth9, so the first of ours becomes net2, and the second net3."""
    assert without_clashes(["a@eth9", "b@net2", "c@eth8"], written, 1) == ["a", "b", "c@eth8"]
