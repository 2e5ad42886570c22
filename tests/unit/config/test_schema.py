"""Tests of the shipped JSON Schema: it is up to date, and agrees with the loader."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest

import webhook.config
from tests.fabrics_file import load_fabrics
from tests.unit.config.files import fabric, roce, sriov, text
from webhook.config.findings import InvalidConfiguration
from webhook.config.load import parse_fabrics
from webhook.config.messages import known_fields
from webhook.config.model import FabricConfiguration
from webhook.config.schema import json_schema, schema_text

CONFIG = Path(webhook.config.__file__).parent
SHIPPED = CONFIG / "fabrics.schema.json"
EXAMPLES = sorted((CONFIG / "examples").glob("*.yaml"))


def fits(written: str) -> bool:
    """Return whether a file is valid under the schema."""
    validator = jsonschema.Draft202012Validator(json_schema())
    return validator.is_valid(json.loads(written))


def test_the_shipped_schema_is_up_to_date() -> None:
    """fabrics.schema.json is generated from the models; `make golden` writes it."""
    assert SHIPPED.read_text(encoding="utf-8") == schema_text(), "stale: run make golden"


def test_the_schema_is_valid_and_describes_every_field() -> None:
    """It is valid under draft 2020-12, and every field has a description for editors."""
    schema = json_schema()
    jsonschema.Draft202012Validator.check_schema(schema)
    assert schema["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    assert schema["title"] == "FabricConfiguration"
    parts = [schema, *schema["$defs"].values()]
    described = [field for part in parts for field in part["properties"].values()]
    assert len(described) == len(FabricConfiguration.model_fields) + len(known_fields())
    assert all(field["description"].endswith(".") for field in described)


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_the_examples_are_loaded_without_a_finding(path: Path) -> None:
    """Each shipped example is valid, names the schema in its first line, and describes itself."""
    lines = path.read_text(encoding="utf-8").splitlines()
    assert lines[0] == "# yaml-language-server: $schema=../fabrics.schema.json"
    assert (path.parent / "../fabrics.schema.json").is_file()
    assert lines[1:3] != ["#", ""]
    loaded = load_fabrics(path)
    assert loaded.findings == ()
    assert loaded.compiled.fabrics


def test_there_is_an_example_for_each_kind_of_cluster() -> None:
    """The documentation links to these files."""
    assert [path.stem for path in EXAMPLES] == [
        "alibaba-erdma",
        "amd-pollara",
        "aws-efa",
        "azure-nd-h100-shared",
        "azure-nd-h100-sriov",
        "broadcom-thor",
        "cloud-boolean",
        "coreweave",
        "gke-gib",
        "h100-eight-rails",
        "h100-eight-roce-rails",
        "ibm-multi-nic",
        "lab-two-infiniband",
        "nebius",
        "nvidia-sriov",
        "oci-h100-host-network",
        "oci-h100-vf",
        "openshift-sriov",
        "roce-host-network",
        "roce-sriov-multus",
        "volcengine-roce",
    ]


@pytest.mark.parametrize(
    "written",
    [
        text(),
        text(fabric(), nvlink={"allowNamespaces": ["a"]}),
        text(roce(env={"A": 1, "B": True}, qos={"pkey": "0x8001"})),
        text(sriov(sharedMemory=None, match={"nodeLabels": {"a": "b", "c": ["d"]}})),
        text(fabric(resources=[{"name": "rdma/ib", "count": "per-gpu", "max": None}])),
    ],
)
def test_the_schema_takes_what_the_loader_takes(written: str) -> None:
    """An editor underlines neither a valid file nor one that only breaks a rule beyond types."""
    assert fits(written)


@pytest.mark.parametrize(
    "fields",
    [
        {"hca": []},
        {"name": ...},
        {"mode": "sriov"},
        {"hcas": "mlx5_0"},
        {"rateGbps": 0},
        {"qos": {"pkey": 0}},
        {"qos": {"trafficClass": 256}},
        {"env": {"A": []}},
        {"match": {"nodeLabels": {"a": []}}},
        {"resources": [{"name": "rdma/ib", "count": 0}]},
    ],
)
def test_the_schema_refuses_what_the_loader_refuses(fields: dict[str, Any]) -> None:
    """Editors underline unknown fields and wrong types, choices and ranges during typing."""
    written = text(fabric(**fields))
    with pytest.raises(InvalidConfiguration):
        parse_fabrics(written, "f.yaml")
    assert not fits(written)
