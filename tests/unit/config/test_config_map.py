"""Tests that a ConfigMap is read as the fabrics file that it holds."""

from __future__ import annotations

import json

import pytest

from webhook.config.findings import InvalidConfiguration
from webhook.config.load import parse_fabrics

FILE = """\
apiVersion: rdma.lab/v1alpha1
kind: FabricConfiguration

spec:
  fabrics:
  - name: ib
    hcas: [mlx5_0]
    resources: [{name: rdma/ib}]
"""
HEAD = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: fabrics}\ndata:\n"


def block(text: str, key: str = "fabrics.yaml", header: str = "|") -> str:
    """Write a text as a literal block under a key of `data`."""
    return f"  {key}: {header}\n" + "".join(
        f"    {line}\n" if line else "\n" for line in text.splitlines()
    )


def refused(written: str) -> str:
    """Return the error text for a ConfigMap that cannot be used."""
    with pytest.raises(InvalidConfiguration) as caught:
        parse_fabrics(written, "map.yaml")
    return str(caught.value)


@pytest.mark.parametrize(
    "written",
    [
        HEAD + block(FILE),
        HEAD + block(FILE, header="|-  # the file"),
        HEAD + block(FILE) + "binaryData: {}\n",
        HEAD + block(FILE) + block("just a note", "README"),
        (HEAD + block(FILE)).replace("\n", "\r\n"),
        json.dumps({"kind": "ConfigMap", "data": {"f": FILE}}),
    ],
)
def test_the_file_inside_is_loaded(written: str) -> None:
    """It compiles to the same fabrics, and the loaded text is the whole ConfigMap."""
    loaded = parse_fabrics(written, "map.yaml")
    assert loaded.fabrics == parse_fabrics(FILE, "fabrics.yaml").fabrics
    (warning,) = loaded.findings
    assert (warning.severity, loaded.source.text) == ("warning", written)
    assert "`rdma-webhook check-config --convert FILE`" in warning.message


def test_lines_and_columns_are_those_of_the_config_map() -> None:
    """An editor jumps to the right place, also for a text that is not YAML."""
    wrong = HEAD + block(FILE.replace("hcas", "hca"))
    assert refused(wrong) == "map.yaml:12: spec.fabrics[0].hca: unknown field (did you mean hcas?)"
    assert wrong.splitlines()[11] == "        hca: [mlx5_0]"
    assert refused(HEAD + block(FILE.replace("- name", "-name"))).startswith("map.yaml:11:7: ")
    assert refused(wrong.replace("\n", "\r\n")).startswith("map.yaml:12: ")


@pytest.mark.parametrize(
    "written",
    [
        json.dumps({"kind": "ConfigMap", "data": {"f.yaml": FILE.replace("hcas", "hca")}}),
        f'kind: ConfigMap\ndata:\n  f.yaml: "{FILE.replace("hcas", "hca")}"\n'.replace(
            "\n", "\n\n"
        ),
    ],
)
def test_lines_of_a_quoted_text_are_said_to_be_its_own(written: str) -> None:
    """The lines of such a text are not those of the ConfigMap, so messages name the key."""
    assert refused(written).startswith('map.yaml data["f.yaml"]:')


@pytest.mark.parametrize(
    ("written", "said"),
    [
        ("kind: ConfigMap\n", "map.yaml:1: is a ConfigMap, but its data has no fabrics file"),
        (HEAD, "map.yaml:4: is a ConfigMap, but its data has no fabrics file"),
        (
            "kind: ConfigMap\ndata: {a: 1}\n",
            "map.yaml:2: is a ConfigMap, but its data has no fabrics file",
        ),
        (
            HEAD + block(FILE, "a") + block(FILE, "b"),
            (
                "map.yaml:4: is a ConfigMap with several files (a, b): save one of them, and "
                "give that file"
            ),
        ),
        (
            HEAD + "  f: ''\n",
            'map.yaml data["f"]: is empty: a fabrics file begins with apiVersion: ',
        ),
        (HEAD + block("a: 1"), "map.yaml:6: apiVersion: is missing"),
    ],
)
def test_a_config_map_without_one_file_is_refused(written: str, said: str) -> None:
    """The message says what the ConfigMap has instead."""
    assert refused(written).startswith(said)
