"""Tests of the values that the kubelet makes of `$(NAME)`, `$$` and `fieldRef`."""

from __future__ import annotations

from typing import Any

import pytest

from tests.builders import container, pod
from webhook.errors import ShapeError
from webhook.model.pod import Container, Pod
from webhook.model.pod.container import env_item
from webhook.model.pod.environment import Sources, variables_of

PATH = ("spec", "containers", 0)
UNSEEN = {"valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}}


def read(*items: tuple[str, str] | dict[str, Any], **fields: Any) -> Container:
    """Read a container with these variables: pairs, or items of `env`."""
    env = [env_item(*item) if isinstance(item, tuple) else item for item in items]
    return Container(PATH, {"env": env, **fields})


@pytest.mark.parametrize(
    ("written", "value"),
    [
        ("$(A)", "1"),
        ("=$(A),$(B)", "=1,"),
        ("$(A)$(A)x", "11x"),
        ("$(LATE)", "$(LATE)"),
        ("$(A)$(NONE)", "1$(NONE)"),
        ("$(X)", "$(X)"),
        ("$()", "$()"),
        ("$$", "$"),
        ("$$(A)", "$(A)"),
        ("$$$(A)", "$1"),
        ("$$$$(A)$$", "$$(A)$"),
        ("$(A", "$(A"),
        ("$(A)$(A", "1$(A"),
        ("$(A)$$", "1$"),
        ("$(A)$$$", "1$$"),
        ("$A${A}$(A)", "$A${A}1"),
        ("$(N$(A)", "$(N$(A)"),
        ("$($(A))", "$($(A))"),
        ("$(C)", "$(A)"),
        ("a)$(A)", "a)1"),
        ("$(DOTTED.name)", "2"),
        ("$(MULTI\nLINE)", "$(MULTI\nLINE)"),
    ],
)
def test_references_have_the_values_of_earlier_items(written: str, value: str) -> None:
    """As in Kubernetes' expansion: values are not expanded again, and other names stay."""
    before = (("A", "1"), ("B", ""), ("C", "$$(A)"), ("DOTTED.name", "2"))
    assert read(*before, ("X", written), ("LATE", "3")).env["X"] == value


def test_the_last_earlier_item_counts() -> None:
    """The kubelet goes through `env` in order, and a name may be in it twice."""
    env = read(("A", "1"), ("X", "$(A)"), ("A", "2"), ("Y", "$(A)"), ("A", "$(A)3")).env
    assert env == {"A": "23", "X": "1", "Y": "2"}


@pytest.mark.parametrize(
    "written",
    ["$(S)", "a$(S)", "$(A)$(S)", "$(TRAINER_SERVICE_HOST)", "$(DB_PORT)", "$(DB_PORT_80_TCP)"],
)
def test_a_reference_without_a_known_value_makes_none(written: str) -> None:
    """A Secret, and a Service of the namespace, whose variables need not be in the pod."""
    assert read(("A", "1"), {"name": "S", **UNSEEN}, ("X", written)).env["X"] is None


@pytest.mark.parametrize(("written", "value"), [("$(A)", "1"), ("$(B)", None), ("$$(B)", "$(B)")])
def test_env_from_may_define_any_other_name(written: str, value: str | None) -> None:
    """It comes before `env`, which overrides it."""
    source = [{"secretRef": {"name": "s"}}]
    assert read(("A", "1"), ("X", written), envFrom=source).env["X"] == value


def test_known_variables_of_env_from_come_before_env() -> None:
    """Other names then stay, unless another source of envFrom is unknown."""
    items = [("X", "$(A)"), ("Y", "$(B)"), ("Z", "$(C)"), ("A", "2"), ("W", "$(A)")]
    before = {"A": "1", "C": None}
    for more, unknown in ((False, "$(B)"), (True, None)):
        sources = Sources(before, more, lambda _: None)
        variables = variables_of([env_item(*item) for item in items], PATH, sources)
        assert variables == {"X": "1", "Y": unknown, "Z": None, "A": "2", "W": "2"}


def test_a_few_short_texts_make_no_endless_one() -> None:
    """Each item may double the one before; what references insert is bounded."""
    items = [("A0", "x" * 8), *((f"A{i}", f"$(A{i - 1})$(A{i - 1})") for i in range(1, 40))]
    env = read(*items).env
    lengths = [len(value) for value in env.values() if value is not None]
    assert lengths == [8 * 2**i for i in range(10)]
    assert read(("A", "x" * 4100), ("X", "$(A)$(A)")).env["X"] == "x" * 8200
    assert read(("A", "x" * 4100), ("X", "$(A)$(A)$(NONE)$$")).env["X"] == "x" * 8200 + "$(NONE)$"
    assert read(("A", "x" * 4100), ("X", "$(A)$(A)$$)")).env["X"] == "x" * 8200 + "$)"
    assert read(("A", "x" * 4100), ("B", "x"), ("X", "$(B)$(A)$(A)$(A)")).env["X"] is None
    assert read(("A", "x" * 4100), ("B", "12345"), ("X", "$(A)$(A)$(B)")).env["X"] is None


METADATA: dict[str, Any] = {
    "name": "train",
    "namespace": "lab",
    "labels": {"off": "1", "a/b": "", "n": 1, "x']": "2", "rdma.lab/x": "6"},
    "annotations": {
        "off": "3",
        "rdma.lab/x": "4",
        "ulimits.x/y": "5",
        "k8s.v1.cni.cncf.io/networks": "7",
    },
}


def field(path: Any, **metadata: Any) -> str | None:
    """Return the value of a field of a pod, without the metadata that is None."""
    source = {"name": "X", "valueFrom": {"fieldRef": {"fieldPath": path}}}
    written = {**METADATA, **metadata}
    kept = {key: value for key, value in written.items() if value is not None}
    manifest = pod(container(env=[source])) | {"metadata": kept}
    return Pod(manifest).containers[0].env["X"]


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("metadata.labels['off']", "1"),
        ("metadata.labels['a/b']", ""),
        ("metadata.labels['x']']", "2"),
        ("metadata.labels['rdma.lab/x']", "6"),
        ("metadata.annotations['off']", "3"),
        ("metadata.name", "train"),
        ("metadata.namespace", "lab"),
    ],
)
def test_the_pod_has_its_own_metadata(path: str, value: str) -> None:
    """Its labels and annotations are known when it is admitted."""
    assert field(path) == value


@pytest.mark.parametrize(
    "path",
    [
        "metadata.labels['missing']",
        "metadata.labels['n']",
        "metadata.labels",
        "metadata.labels['']",
        "metadata.annotations['missing']",
        "metadata.annotations['rdma.lab/x']",
        "metadata.annotations['ulimits.x/y']",
        "metadata.annotations['k8s.v1.cni.cncf.io/networks']",
        "metadata.finalizers['off']",
        "metadata.uid",
        "xmetadata.name",
        "spec.nodeName",
        "status.podIP",
        7,
    ],
)
def test_other_fields_are_not_known(path: Any) -> None:
    """They may come later, the webhook writes them, or the kubelet has them."""
    assert field(path, uid="u") is None


def test_a_generated_name_is_not_known() -> None:
    """The API server generates it after admission."""
    assert field("metadata.name", generateName="train-") is None
    assert field("metadata.name", generateName="") == "train"
    assert field("metadata.name", name=None) is None
    assert field("metadata.name", name="") is None
    assert field("metadata.namespace", generateName="train-") == "lab"
    assert field("metadata.namespace", namespace=None) is None


@pytest.mark.parametrize("path", ["metadata.name", "metadata.labels['a']"])
def test_a_long_field_is_not_known(path: str) -> None:
    """All containers may read the same one, and each would keep what it makes of it."""
    longest = "x" * 4096
    assert field(path, name=longest, labels={"a": longest}) == longest
    assert field(path, name=f"{longest}x", labels={"a": f"{longest}x"}) is None


def test_malformed_metadata_has_no_fields() -> None:
    """Its decision names the fault."""
    source = {"name": "X", "valueFrom": {"fieldRef": {"fieldPath": "metadata.labels['a']"}}}
    assert Container(PATH, {"env": [source]}, "x").env == {"X": None}
    assert Container(PATH, {"env": [source]}, {"labels": ["a"]}).env == {"X": None}


def test_a_reference_to_a_field() -> None:
    """It has the value of the field."""
    source = {"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "metadata.labels['a']"}}}
    view = Container(PATH, {"env": [source, env_item("X", "$(A)2")]}, {"labels": {"a": "1"}})
    assert view.env == {"A": "1", "X": "12"}


@pytest.mark.parametrize(
    ("words", "expanded"),
    [
        (["run", "$(A)"], ["run", "1"]),
        (["sh", "-c", "a=$$(hostname) $(A)"], ["sh", "-c", "a=$(hostname) 1"]),
        (["$(S) $(A)"], ["$(S) 1"]),
        (["$(hostname)" * 1000, "$(A)"], ["$(hostname)" * 1000, "1"]),
        (["$(LONG)", "$(A)$(LONG)$(LONG)", "$(B)"], ["x" * 4100, "$(A)$(LONG)$(LONG)", "$(B)"]),
        (["run", "$A", "$(A"], ["run", "$A", "$(A"]),
    ],
)
def test_words_of_a_command(words: list[str], expanded: list[str]) -> None:
    """The kubelet expands them too; a word that would be too long stays as it is."""
    variables = (("A", "1"), ("B", "12345"), {"name": "S", **UNSEEN}, ("LONG", "x" * 4100))
    view = read(*variables, command=words[:1], args=words[1:])
    assert view.expanded_words == expanded
    assert view.command_text == "\n".join(expanded)


def test_words_without_references_need_no_variables() -> None:
    """The reader of a malformed variable names it."""
    assert read({"name": 1}, command=["a", "$x"]).command_text == "a\n$x"
    with pytest.raises(ShapeError):
        _ = read({"name": 1}, command=["$(a)"]).command_text


@pytest.mark.parametrize(
    ("items", "clause"),
    [
        ([("X", "1")], ""),
        ([("X", "a)$$")], "a)$$ in env"),
        ([("X", "$(A)"), ("X", "1")], ""),
        ([("A", "1"), ("X", "=$(A)")], "=$(A) in env"),
        ([("X", "1$$")], "1$$ in env"),
        (
            [("X", "1"), ("X", "$(A)"), ("A", "1")],
            "$(A) is not expanded, since env defines it only later",
        ),
        ([("X", "$(A)")], "$(A) is not expanded, since env defines it nowhere before"),
        ([("X", "$(X)")], "$(X) is not expanded, since env defines it nowhere before"),
        ([("A", "1"), ("X", "$(A)"), ("A", "2")], "$(A) in env"),
        (
            [("A", "1"), ("X", "$$$(A)$(B)"), ("B", "2")],
            "$(B) is not expanded, since env defines it only later",
        ),
        ([{"name": "X", **UNSEEN}], ""),
        ([("Y", "$(A)")], ""),
    ],
)
def test_how_a_value_comes_about(items: list[Any], clause: str) -> None:
    """The order of `env` is named if it is why a reference stays."""
    assert read(*items).derivation("X") == clause


def test_why_a_reference_stays() -> None:
    """Without a reference in the value that the process gets, there is no clause."""
    view = read(("A", "1"), ("X", "$(A)"), ("Y", "$(B)"), ("Z", "$$(A)"), ("B", ""))
    assert view.unexpanded("X") == view.unexpanded("missing") == view.unexpanded("Z") == ""
    assert view.unexpanded("Y") == "$(B) is not expanded, since env defines it only later"


def test_a_field_is_named_as_the_source_of_a_value() -> None:
    """The value is that of the pod's metadata."""
    source = {"name": "X", "valueFrom": {"fieldRef": {"fieldPath": "metadata.labels['a']"}}}
    view = Container(PATH, {"env": [source]}, {"labels": {"a": "1"}})
    assert view.derivation("X") == "metadata.labels['a'] in env"
