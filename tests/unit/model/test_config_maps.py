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
    """Values are strings; a malformed part is left out."""
    assert config_map_data({"data": {"A": "1", "B": 2, 3: "x"}}) == {"A": "1"}
    for written in ({}, {"data": None}, {"data": ["A"]}):
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
    assert set(filter(None, names)) == {"a", "b", "c"}


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
    assert not any(config_maps_named_in(manifest))


KNOWN = {"site": {"NCCL_NET": "Socket", "A": "1", "EMPTY": ""}, "late": {"A": "2"}}


def read(user_env: dict[str, str | None], **fields: Any) -> ReadEnv:
    """Read the variables of a container."""
    return read_env(Container(("spec", "containers", 0), container(**fields)), user_env, KNOWN)


@pytest.mark.parametrize(
    ("user_env", "fields", "variables", "unseen"),
    [
        ({"X": "1"}, {}, {"X": "1"}, ""),
        (
            {"X": None},
            {"env": [{"name": "X", "valueFrom": reference("site", "NCCL_NET")}]},
            {"X": "Socket"},
            "",
        ),
        (
            {"X": None},
            {"env": [{"name": "X", "valueFrom": reference("site", "missing")}]},
            {"X": None},
            "",
        ),
        (
            {"X": None},
            {"env": [{"name": "X", "valueFrom": reference("other", "A")}]},
            {"X": None},
            "",
        ),
        (
            {"X": "set by the command"},
            {"env": [{"name": "X", "valueFrom": reference("site", "A")}]},
            {"X": "set by the command"},
            "",
        ),
        (
            {},
            {"env": [{"name": "X", "valueFrom": reference("site", "A")}]},
            {},
            "",
        ),
        (
            {"X": None},
            {"env": [{"name": "X", "value": "1"}]},
            {"X": None},
            "",
        ),
        (
            {"X": None, "Y": None, "Z": None},
            {
                "env": [
                    {"name": "X", "valueFrom": reference("site", "EMPTY")},
                    {"name": "Y", "value": "=$(X)$(A)"},
                    {"name": "Z", "value": "=$(X)$(B)"},
                ],
                "envFrom": [{"configMapRef": {"name": "late"}}],
            },
            {"A": "2", "X": "", "Y": "=2", "Z": "=$(B)"},
            "",
        ),
        (
            {"X": None, "Y": None},
            {
                "env": [{"name": "X", "value": "$(A)"}, {"name": "Y", "value": "$(B)"}],
                "envFrom": [{"configMapRef": {"name": n}} for n in ("late", "other")],
            },
            {"A": "2", "X": "2", "Y": None},
            "ConfigMap other",
        ),
        (
            {"X": None, "Y": "1"},
            {
                "env": [
                    {"name": "Y", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
                    {"name": "X", "value": "$(Y)"},
                ],
                "envFrom": [{"configMapRef": {"name": "other"}}],
            },
            {"X": None, "Y": "1"},
            "ConfigMap other",
        ),
        ({}, {"envFrom": [{"configMapRef": {"name": "site"}}]}, KNOWN["site"], ""),
        (
            {},
            {"envFrom": [{"configMapRef": {"name": n}} for n in ("site", "late")]},
            {"NCCL_NET": "Socket", "A": "2", "EMPTY": ""},
            "",
        ),
        (
            {"A": "env"},
            {"envFrom": [{"prefix": "P_", "configMapRef": {"name": "late"}}]},
            {"P_A": "2", "A": "env"},
            "",
        ),
        ({"A": "env"}, {"envFrom": [{"configMapRef": {"name": "late"}}]}, {"A": "env"}, ""),
        ({}, {"envFrom": [{"secretRef": {"name": "site"}}]}, {}, "Secret site"),
        (
            {},
            {"envFrom": [{"configMapRef": {"name": "late"}}, {"configMapRef": {"name": "other"}}]},
            {"A": "2"},
            "ConfigMap other",
        ),
        ({}, {"envFrom": [None]}, {}, "Secret"),
    ],
    ids=case_name,
)
def test_variables_from_config_maps(
    user_env: dict[str, str | None],
    fields: dict[str, Any],
    variables: dict[str, str | None],
    unseen: str,
) -> None:
    """Env comes before envFrom, and the command before both; Secrets stay unknown."""
    result = read(user_env, **fields)
    assert result.variables == variables
    assert (result.unseen.title if result.unseen else "") == unseen


def test_the_key_of_a_source_that_is_not_known() -> None:
    """All keys of a ConfigMap, and none of a Secret."""
    other, secret = {"configMapRef": {"name": "other"}}, {"secretRef": {"name": "other"}}
    assert read({}, envFrom=[other]).unseen == EnvSource("ConfigMap other", DataKey("other", ""))
    assert read({}, envFrom=[secret]).unseen == EnvSource("Secret other", None)


def test_the_keys_that_variables_come_from() -> None:
    """Not those of variables that env or a command overrides."""
    item = {"name": "X", "valueFrom": reference("site", "A")}
    sources = [{"configMapRef": {"name": n}, "prefix": "P_"} for n in ("site", "late")]
    user_env = {"X": None, "P_NCCL_NET": "IB"}
    keys = {
        "X": DataKey("site", "A"),
        "P_A": DataKey("late", "A"),
        "P_EMPTY": DataKey("site", "EMPTY"),
    }
    assert read(user_env, env=[item], envFrom=sources).keys == keys
    assert read({"X": "1"}, env=[item]).keys == {}
    assert read({"X": None}, env=[{"name": "X", "valueFrom": reference("no", "A")}]).keys == {}


def test_the_keys_of_env() -> None:
    """A malformed reference is none."""
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
    assert read_env(view, view.env, KNOWN).variables == {"A": "train", "B": "2", "X": "train2"}


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
