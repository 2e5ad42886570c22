"""The facts file may be kubectl's output in any of its formats, and nothing else."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from webhook.config.files import load_facts, parse_facts
from webhook.config.findings import InvalidConfiguration
from webhook.model.facts import Facts

NAMESPACE = """\
apiVersion: v1
kind: Namespace
metadata:
  name: lab
  labels: {rdma.lab/enable: "true", since: 2024-01-01}
"""
OBJECTS: list[dict[str, Any]] = [
    {"kind": "Namespace", "metadata": {"name": "lab", "labels": {"rdma.lab/enable": "true"}}},
    {
        "kind": "ResourceQuota",
        "metadata": {"name": "memory", "namespace": "lab"},
        "spec": {"hard": {"limits.memory": "1Ti"}},
    },
    {
        "kind": "Node",
        "metadata": {"name": "n1", "labels": {"zone": "a"}},
        "status": {"allocatable": {"cpu": "8", "nvidia.com/gpu": "8", "rdma/ib": "0"}},
    },
]


def load(tmp_path: Path, content: str) -> Facts:
    """Load facts from a text."""
    path = tmp_path / "facts"
    path.write_text(content)
    return load_facts(path)


def test_all_forms_give_the_same_facts(tmp_path: Path) -> None:
    """A List, typed lists whose items have no kind, and documents are equal, as JSON or YAML."""
    expected = Facts.from_objects(OBJECTS)
    listed = {"apiVersion": "v1", "kind": "List", "items": OBJECTS}
    typed = [
        {"kind": f"{item['kind']}List", "items": [{k: item[k] for k in item if k != "kind"}]}
        for item in OBJECTS
    ]
    forms = [
        json.dumps(listed),
        "---\n" + json.dumps(listed, indent=1),
        "\n---\n".join(json.dumps(item) for item in OBJECTS),
        "# nothing\n---\n---\n" + "\n---\n".join(json.dumps(item) for item in typed),
    ]
    assert [load(tmp_path, form) for form in forms] == [expected] * len(forms)
    assert expected.namespace("lab").memory_limit_rejection != ""


def test_yaml_labels_stay_strings(tmp_path: Path) -> None:
    """A date in a label is a string, as it is in the cluster."""
    assert load(tmp_path, NAMESPACE).namespace("lab").labels == {
        "rdma.lab/enable": "true",
        "since": "2024-01-01",
    }


@pytest.mark.parametrize("text", ["kind: Pod", ""])
def test_the_message_names_the_command_that_makes_the_file(text: str) -> None:
    """It is the caller's, since `fabrics` needs only nodes."""
    with pytest.raises(InvalidConfiguration, match="pass the output of `kubectl get nodes -A`"):
        parse_facts(text, "facts.yaml", "kubectl get nodes -A")
    with pytest.raises(InvalidConfiguration, match="`kubectl get ns,limitrange,quota,node -A -o"):
        parse_facts(text, "facts.yaml")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "contains no objects; "),
        ('{"kind": "List", "items": []}', "contains no objects; "),
        ("kind: Pod", "contains an object of kind 'Pod'; "),
        ('{"kind": "List", "items": [{"kind": "Pod"}]}', "contains an object of kind 'Pod'; "),
        ('{"kind": "PodList", "items": [{}]}', "contains an object of kind 'Pod'; "),
        ('{"kind": "List", "items": ["x"]}', "contains 'x' without a kind; "),
        ('{"kind": "List"}', "contains a List without a list of items; "),
        ("[1]", "contains a list without a kind; "),
        ("hello", "contains 'hello' without a kind; "),
        ('{"kind": ["Node"]}', "contains an object of kind ['Node']; "),
        ("kind: [", "not YAML: "),
        ('{"a": ' * 100_000, "is nested "),
        ('{"kind": "Namespace", "metadata": 1}', "contains an invalid object: "),
    ],
)
def test_anything_else_is_one_clear_error(tmp_path: Path, content: str, message: str) -> None:
    """The error describes the actual content of the text."""
    with pytest.raises(InvalidConfiguration) as caught:
        load(tmp_path, content)
    text = str(caught.value)
    assert text.startswith(str(tmp_path / "facts"))
    assert message in text
    assert len(text.splitlines()) == 1
