from typing import Any

import pytest

from webhook.errors import ShapeError
from webhook.model.pod import Container
from webhook.model.pod.container import env_item

PATH = ("spec", "containers", 0)


def read(**fields: Any) -> Container:
    """Read a container with these fields."""
    return Container(PATH, fields)


def test_env_is_read_in_its_order_and_the_last_of_a_name_wins() -> None:
    """As in the kubelet, which reads `env` in order, a later entry replaces an earlier one."""
    env = [env_item("A", "1"), env_item("B", "2"), env_item("A", "3")]
    assert list(read(env=env).env.items()) == [("A", "3"), ("B", "2")]


@pytest.mark.parametrize("item", [{}, {"value": ""}, {"value": None}, {"valueFrom": None}])
def test_an_absent_value_is_the_empty_text(item: dict[str, Any]) -> None:
    """The API server drops an empty value, so all of these mean the same pod."""
    assert read(env=[{"name": "A", **item}]).env == {"A": ""}


@pytest.mark.parametrize(
    "item",
    [
        {"valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}},
        {"value": "", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}},
        {"valueFrom": {"fieldRef": "metadata.name"}},
        {"valueFrom": {}},
    ],
)
def test_what_only_the_kubelet_knows_is_none(item: dict[str, Any]) -> None:
    """A field of the status, a Secret or a malformed source has no known value."""
    assert read(env=[{"name": "A", **item}]).env == {"A": None}


def test_a_later_reference_hides_an_earlier_literal() -> None:
    """The last entry wins, whatever its kind."""
    reference = {"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}}
    assert read(env=[env_item("A", "1"), reference]).env == {"A": None}


@pytest.mark.parametrize("value", ["", "a$b", "$", "${A}", "=mlx5_0", "`x`"])
def test_other_dollars_are_literal(value: str) -> None:
    """Only `$(` and `$$` have a meaning for the kubelet."""
    assert read(env=[env_item("A", value)]).env == {"A": value}


@pytest.mark.parametrize("container", [{}, {"env": None}, {"env": []}, {"env": [{"value": "x"}]}])
def test_no_names_are_no_environment(container: dict[str, Any]) -> None:
    """An entry without a name is ignored here; the API server reports it."""
    assert read(**container).env == {}


@pytest.mark.parametrize(
    ("env", "message"),
    [
        ({"A": "1"}, "env must be a list, but is a mapping ({'A': '1'})"),
        (["A=1"], "env[0] must be a mapping, but is a string ('A=1')"),
        ([{"name": "A", "value": 1}], "env[0].value must be a string, but is a number (1)"),
        ([{"name": 1}], "env[0].name must be a string, but is a number (1)"),
    ],
)
def test_a_wrong_type_is_named_with_its_place(env: Any, message: str) -> None:
    """An unquoted number is the most common mistake in a hand-written `env`."""
    with pytest.raises(ShapeError) as raised:
        _ = read(env=env).env
    assert str(raised.value) == f"spec.containers[0].{message}"


@pytest.mark.parametrize(
    ("container", "has_sources"),
    [
        ({}, False),
        ({"envFrom": None}, False),
        ({"envFrom": []}, False),
        ({"envFrom": [{"configMapRef": {"name": "c"}}]}, True),
    ],
)
def test_env_from_says_that_names_are_unknown(container: dict[str, Any], has_sources: bool) -> None:
    """Any source in `envFrom` may contain any name."""
    assert bool(read(**container).env_from) is has_sources


def test_names_of_variables() -> None:
    """Only names are read; an entry without one is left for the API server to reject."""
    assert read(env=[{"name": "A"}, {"name": 1}, {}]).env_names == ["A"]
