from __future__ import annotations

from typing import Any

import pytest

from tests.builders import container, pod
from tests.case_names import case_name
from webhook.model.config_maps import (
    DataKey,
    EnvSource,
    ReadEnv,
    config_map_data,
    config_maps_named_in,
    keys_in_env,
    read_env,
)
from webhook.model.facts import Facts
from webhook.model.pod import Container


def reference(name: str, key: str = "k") -> dict[str, Any]:
    """Make a valueFrom of a ConfigMap's key."""
    return {"configMapKeyRef": {"name": name, "key": key}}


def test_the_data_of_a_config_map() -> None:
    """Values are strings; those of binary data are not read, and a malformed part is left out."""
    assert config_map_data({"data": {"A": "1", "B": 2, 3: "x"}}) == {"A": "1"}
    config_map = {"data": {"A": "1"}, "binaryData": {"B": "Zm9v", "C": 7}}
    assert config_map_data(config_map) == {"A": "1", "B": None}
    for written in ({}, {"data": None}, {"data": ["A"], "binaryData": ["B"]}):
        assert config_map_data(written) == {}


def test_the_config_maps_of_a_pod() -> None:
    """Each field counts, in containers of every kind."""
    main = container(
        env=[
            {"name": "A", "valueFrom": reference("a")},
            {"name": "B", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}},
            {"name": "C", "value": "1"},
        ],
        envFrom=[{"configMapRef": {"name": "b"}}, {"secretRef": {"name": "s"}}],
    )
    init = container("init", env=[{"name": "A", "valueFrom": reference("c")}])
    names = config_maps_named_in(pod(main, initContainers=[init]))
    assert sorted(names) == ["a", "b", "c"]


@pytest.mark.parametrize(
    "manifest",
    [
        {},
        {"spec": 7},
        {"spec": {"containers": "x"}},
        {"spec": {"containers": [7, {"env": "x", "envFrom": [None, {"configMapRef": "x"}]}]}},
        {"spec": {"containers": [{"env": [7, {"valueFrom": {"configMapKeyRef": {"name": 1}}}]}]}},
    ],
)
def test_a_malformed_pod_names_none(manifest: dict[str, Any]) -> None:
    """Its decision names the fault."""
    assert list(config_maps_named_in(manifest)) == []


KNOWN: dict[str, dict[str, str | None]] = {
    "site": {"NCCL_NET": "Socket", "A": "1", "EMPTY": ""},
    "late": {"A": "2"},
    "binary": {"A": None, "B": "3"},
}


def read(*env_items: dict[str, Any], from_: tuple[Any, ...] = ()) -> ReadEnv:
    """Read a container with these items of env, and envFrom with these ConfigMaps or sources."""
    sources = [{"configMapRef": {"name": x}} if isinstance(x, str) else x for x in from_]
    fields = container(env=list(env_items), envFrom=sources)
    return read_env(Container(("spec", "containers", 0), fields), KNOWN)


def value(name: str, text: str) -> dict[str, Any]:
    """Make an item of env with a value."""
    return {"name": name, "value": text}


def from_key(name: str, *key: str) -> dict[str, Any]:
    """Make an item of env from a ConfigMap's key."""
    return {"name": name, "valueFrom": reference(*key)}


OWN_NAME = {"name": "Y", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}


@pytest.mark.parametrize(
    ("items", "from_", "variables", "unseen"),
    [
        ([value("X", "1")], (), {"X": "1"}, ""),
        ([from_key("X", "site", "NCCL_NET")], (), {"X": "Socket"}, ""),
        ([from_key("X", "site", "missing")], (), {"X": None}, ""),
        ([from_key("X", "binary", "A")], (), {"X": None}, ""),
        ([from_key("X", "other", "A")], (), {"X": None}, ""),
        ([from_key("X", "site", "A"), value("X", "$(X)0")], (), {"X": "10"}, ""),
        (
            [from_key("X", "site", "EMPTY"), value("Y", "=$(X)$(A)"), value("Z", "=$(X)$(B)")],
            ("late",),
            {"A": "2", "X": "", "Y": "=2", "Z": "=$(B)"},
            "",
        ),
        (
            [value("X", "$(A)"), value("Y", "$(B)")],
            ("late", "other"),
            {"A": "2", "X": "2", "Y": None},
            "ConfigMap other",
        ),
        ([OWN_NAME, value("X", "$(Y)")], ("other",), {"Y": None, "X": None}, "ConfigMap other"),
        ([], ("site",), KNOWN["site"], ""),
        ([], ("binary",), {"B": "3"}, ""),
        ([], ("site", "late"), {"NCCL_NET": "Socket", "A": "2", "EMPTY": ""}, ""),
        (
            [value("A", "env")],
            ({"prefix": "P_", "configMapRef": {"name": "late"}},),
            {"P_A": "2", "A": "env"},
            "",
        ),
        ([value("A", "env")], ("late",), {"A": "env"}, ""),
        ([], ({"secretRef": {"name": "site"}},), {}, "Secret site"),
        ([], ("late", "other", "another"), {"A": "2"}, "ConfigMap other"),
        ([], (None,), {}, "Secret"),
    ],
    ids=case_name,
)
def test_variables_from_config_maps(
    items: list[dict[str, Any]],
    from_: tuple[Any, ...],
    variables: dict[str, str | None],
    unseen: str,
) -> None:
    """Env comes before envFrom; Secrets and binary data stay unknown."""
    result = read(*items, from_=from_)
    assert result.variables == variables
    assert (result.unseen_source.title if result.unseen_source else "") == unseen


def test_the_key_of_a_source_that_is_not_known() -> None:
    """All keys of a ConfigMap, and none of a Secret."""
    assert read(from_=("other",)).unseen_source == EnvSource(
        "ConfigMap other", DataKey("other", "")
    )
    secret = {"secretRef": {"name": "other"}}
    assert read(from_=(secret,)).unseen_source == EnvSource("Secret other", None)


def test_the_keys_that_variables_come_from() -> None:
    """Not those of variables that env overrides."""
    sources = tuple({"configMapRef": {"name": n}, "prefix": "P_"} for n in ("site", "late"))
    expected = {
        "X": DataKey("site", "A"),
        "P_A": DataKey("late", "A"),
        "P_EMPTY": DataKey("site", "EMPTY"),
    }
    item = from_key("X", "site", "A")
    assert read(item, value("P_NCCL_NET", "IB"), from_=sources).keys == expected
    assert read(item, value("X", "1")).keys == {}
    assert read(item, value("X", "$(X)")).keys == {}
    assert read(from_key("X", "no", "A")).keys == {}
    assert read(from_key("X", "site", "A"), from_key("X", "late", "A")).keys == {
        "X": DataKey("late", "A")
    }


def test_without_config_maps_the_variables_are_those_of_env() -> None:
    """As at admission; a source of envFrom stays unknown."""
    view = Container(("spec", "containers", 0), container(env=[value("X", "1")]))
    assert read_env(view, {}) == ReadEnv({"X": "1"})
    assert read_env(view, {}).variables is view.env
    fields = container(env=[value("X", "$(A)")], envFrom=[{"configMapRef": {"name": "site"}}])
    view = Container(("spec", "containers", 0), fields)
    assert read_env(view, {}) == ReadEnv(
        {"X": None}, EnvSource("ConfigMap site", DataKey("site", ""))
    )


def test_the_keys_of_env() -> None:
    """A malformed reference counts as no reference."""
    main = container(
        env=[
            {"name": "A", "valueFrom": reference("a")},
            {"name": "B", "valueFrom": {"configMapKeyRef": {"name": "a", "key": 7}}},
            {"name": "C", "valueFrom": {"configMapKeyRef": {"name": 7, "key": "k"}}},
            {"name": "D", "value": "1"},
        ]
    )
    keys = keys_in_env(Container(("spec", "containers", 0), main))
    assert keys == {"A": DataKey("a", "k"), "C": DataKey("", "k")}
    assert keys["A"].title == "key k of ConfigMap a"


def test_a_reference_to_a_config_map_and_to_the_pod() -> None:
    """A value may refer to both."""
    items = [
        {"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
        {"name": "B", "valueFrom": reference("late", "A")},
        {"name": "X", "value": "$(A)$(B)"},
    ]
    view = Container(("spec", "containers", 0), {"env": items}, {"name": "train"})
    assert view.env == {"A": "train", "B": None, "X": None}
    assert read_env(view, KNOWN).variables == {"A": "train", "B": "2", "X": "train2"}


def config_map(name: str, namespace: str = "", **data: str) -> dict[str, Any]:
    """Make a ConfigMap."""
    home = {"namespace": namespace} if namespace else {}
    return {"kind": "ConfigMap", "metadata": {"name": name, **home}, "data": data}


def test_facts_know_config_maps() -> None:
    """They add up; a Namespace keeps them, and an object of the same name replaces one."""
    facts = Facts().with_objects([config_map("a", A="1"), config_map("b", "other")], "lab")
    assert facts.namespace("lab").config_maps == {"a": {"A": "1"}}
    assert facts.namespace("other").config_maps == {"b": {}}
    lab = {"kind": "Namespace", "metadata": {"name": "lab"}}
    more = facts.with_objects([config_map("a", "lab", A="2"), config_map("c"), lab], "lab")
    assert more.namespace("lab").config_maps == {"a": {"A": "2"}, "c": {}}
    known = facts.with_fallback([lab, config_map("a", "lab", A="3"), config_map("d", "lab")])
    assert known.namespace("lab").config_maps == {"a": {"A": "1"}, "d": {}}
