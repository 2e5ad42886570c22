from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from webhook.errors import ShapeError
from webhook.model.pod import (
    Path,
    Pod,
    at,
    read_flag,
    read_mapping,
    read_mappings,
    read_sequence,
    read_string,
    read_strings,
)

Reader = Callable[[Any, Path], Any]


@pytest.mark.parametrize(
    ("reader", "absent"),
    [
        (read_mapping, {}),
        (read_sequence, []),
        (read_mappings, []),
        (read_strings, []),
        (read_string, None),
        (read_flag, False),
    ],
)
@pytest.mark.parametrize("node", [{}, {"a": None}, {"a": {}}, {"a": {"b": None}}, None, "a"])
def test_absent_and_null_are_the_same(reader: Reader, absent: Any, node: Any) -> None:
    """A field that is missing or null, or whose parent is, has no value."""
    assert reader(node, ("a", "b")) == absent


@pytest.mark.parametrize(
    ("reader", "value"),
    [
        (read_mapping, {"x": 1}),
        (read_sequence, [1, None]),
        (read_mappings, [{}, {"x": 1}]),
        (read_strings, ["", "x"]),
        (read_string, ""),
        (read_string, "x"),
        (read_flag, True),
        (read_flag, False),
    ],
)
def test_a_value_of_the_right_type_is_returned_itself(reader: Reader, value: Any) -> None:
    """Readers copy nothing, since a pod is large and read often."""
    assert reader({"a": [value]}, ("a", 0)) is value


@pytest.mark.parametrize(
    ("reader", "value", "says"),
    [
        (read_mapping, [], "a[0] must be a mapping, but is a list ([])"),
        (read_mapping, "x", "a[0] must be a mapping, but is a string ('x')"),
        (read_sequence, {}, "a[0] must be a list, but is a mapping ({})"),
        (read_sequence, "x", "a[0] must be a list, but is a string ('x')"),
        (read_mappings, [{}, 1], "a[0][1] must be a mapping, but is a number (1)"),
        (read_strings, ["", True], "a[0][1] must be a string, but is a boolean (True)"),
        (read_string, 1.5, "a[0] must be a string, but is a number (1.5)"),
        (read_flag, "true", "a[0] must be true or false, but is a string ('true')"),
        (read_flag, 1, "a[0] must be true or false, but is a number (1)"),
    ],
)
def test_another_type_is_refused_with_its_place(reader: Reader, value: Any, says: str) -> None:
    """The message names the place, the expected type and the value that is there."""
    with pytest.raises(ShapeError) as raised:
        reader({"a": [value]}, ("a", 0))
    assert str(raised.value) == says


def test_who_reads_a_part_says_where_it_stands() -> None:
    """`under` is put before the path in the message; reading does not use it."""
    with pytest.raises(ShapeError) as raised:
        read_mappings({"env": [1]}, ("env",), ("spec", "containers", 2))
    assert str(raised.value) == "spec.containers[2].env[0] must be a mapping, but is a number (1)"


def test_the_whole_document_has_a_name_too() -> None:
    """An empty path is called "the pod"."""
    with pytest.raises(ShapeError) as raised:
        read_mapping([], ())
    assert str(raised.value) == "the pod must be a mapping, but is a list ([])"


@pytest.mark.parametrize(
    ("path", "expected"),
    [((), {"a": ["x"]}), (("a", 0), "x"), (("a", 1), None), (("a", "b"), None), ((0,), None)],
)
def test_at_never_raises(path: Path, expected: Any) -> None:
    """A step that does not fit the node leads to None."""
    assert at({"a": ["x"]}, path) == expected


def test_containers_come_init_first_with_their_kind() -> None:
    """An init container that always restarts is a sidecar (Kubernetes 1.29)."""
    first, side, app, debug = (
        {"name": "setup", "restartPolicy": "Never"},
        {"name": "proxy", "restartPolicy": "Always"},
        {"name": "main", "restartPolicy": "Always"},
        {"image": "x"},
    )
    pod = {
        "spec": {
            "ephemeralContainers": [debug],
            "containers": [app],
            "initContainers": [first, side],
        }
    }
    listed = Pod(pod).containers
    assert [
        (container.kind, container.name, container.path, container.manifest) for container in listed
    ] == [
        ("init", "setup", ("spec", "initContainers", 0), first),
        ("sidecar", "proxy", ("spec", "initContainers", 1), side),
        ("app", "main", ("spec", "containers", 0), app),
        ("ephemeral", "ephemeralContainers[0]", ("spec", "ephemeralContainers", 0), debug),
    ]


@pytest.mark.parametrize("pod", [{}, {"spec": None}, {"spec": {"containers": None}}])
def test_a_pod_without_containers_has_none(pod: dict[str, Any]) -> None:
    """A pod without containers is not an error here; the API server reports it better."""
    assert Pod(pod).containers == ()


def test_a_name_of_another_type_is_refused_with_its_place() -> None:
    """The path in the message starts at the pod, not at the container."""
    with pytest.raises(ShapeError) as raised:
        _ = Pod({"spec": {"containers": [{"name": "a"}, {"name": 5}]}}).containers
    assert str(raised.value) == "spec.containers[1].name must be a string, but is a number (5)"
