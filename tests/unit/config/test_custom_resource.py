"""Tests of the CustomResourceDefinition: up to date, structural, in step with the loader."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from tests.fabrics_file import load_fabrics
from tests.unit.config.test_schema import EXAMPLES
from webhook.config.crd import definition, definition_text
from webhook.config.load import parse_object
from webhook.config.messages import known_fields
from webhook.config.model import FabricConfigurationSpec

MANIFESTS = Path(__file__).parents[3] / "manifests"
VERSION = definition()["spec"]["versions"][0]
OBJECT_SCHEMA: dict[str, Any] = VERSION["schema"]["openAPIV3Schema"]
SPEC: dict[str, Any] = OBJECT_SCHEMA["properties"]["spec"]
PRESERVE, EITHER = "x-kubernetes-preserve-unknown-fields", "x-kubernetes-int-or-string"
#: Words without quotes that YAML 1.1 reads as booleans, in lower case.
BOOLEANS = {"y", "yes", "on", "true", "n", "no", "off", "false"}


def nodes(node: dict[str, Any], path: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield every node of a schema with its path, written as in `webhook.config.messages`."""
    yield path, node
    for name, below in node.get("properties", {}).items():
        yield from nodes(below, f"{path}.{name}".lstrip("."))
    if "items" in node:
        yield from nodes(node["items"], f"{path}[]")
    if "additionalProperties" in node:
        yield from nodes(node["additionalProperties"], f"{path}{{}}")


def draft(node: Any) -> Any:
    """Return a structural schema as a JSON Schema, which has no integer-or-string."""
    if isinstance(node, list):
        return [draft(child) for child in node]
    if not isinstance(node, dict):
        return node
    converted = {key: draft(value) for key, value in node.items()}
    return converted | ({"type": ["integer", "string"]} if EITHER in node else {})


def test_the_shipped_definition_is_up_to_date() -> None:
    """The manifest is generated from the models; `make golden` writes it."""
    shipped = MANIFESTS / "crd" / "fabricconfigurations.yaml"
    assert shipped.read_text(encoding="utf-8") == definition_text(), "stale: run make golden"
    assert yaml.safe_load(definition_text()) == definition()


def test_no_overlay_has_the_definition() -> None:
    """Removing the program must not remove the site's fabrics: the definition is separate."""
    overlays = [path for path in MANIFESTS.rglob("kustomization.yaml") if path.parent.name != "crd"]
    assert len(overlays) >= 5
    assert [path for path in overlays if "crd" in path.read_text(encoding="utf-8")] == []


def test_every_field_of_the_file_is_defined_and_described() -> None:
    """`kubectl explain` has a sentence for each field of the file, and for no other field."""
    described = {path: node["description"] for path, node in nodes(SPEC) if "description" in node}
    del described[""]
    assert set(described) == {field.path for field in known_fields()}
    assert all(described[field.path].startswith(field.description) for field in known_fields())
    assert all(text.endswith(".") for text in described.values())


def test_the_schema_is_structural() -> None:
    """Each node has one type; every object preserves unknown fields; nothing has a default."""
    for path, node in nodes(SPEC):
        assert node.keys() & {"$ref", "anyOf", "default", "title"} == set(), path
        assert node.get("type") or node.get(EITHER) or node.get(PRESERVE), path
        assert (PRESERVE in node) == ("properties" in node or False in node.get("enum", ())), path
        assert isinstance(node.get("additionalProperties", {}), dict), path
    assert OBJECT_SCHEMA[PRESERVE] is True


def test_every_status_field_is_described() -> None:
    """The status is for people, too."""
    for path, node in nodes(OBJECT_SCHEMA["properties"]["status"]):
        if not path.endswith("[]"):
            assert node["description"].endswith("."), path


def test_many_items_of_the_status_have_no_errors() -> None:
    """The API server compares each error with all others: thousands would cost it seconds."""
    status = OBJECT_SCHEMA["properties"]["status"]
    below = {path: node for path, node in nodes(status) if "[]" in path or "{}" in path}
    assert {"conditions[].reason", "fabrics[].resources[].name", "replicas{}.seen"} <= set(below)
    for path, node in below.items():
        assert node[PRESERVE] is True, path
        assert node.keys() <= {PRESERVE, "description", "properties", "items"}, path


def test_columns_show_fields_of_the_schema() -> None:
    """A column with a wrong path would stay empty."""
    columns = {column["name"]: column["jsonPath"] for column in VERSION["additionalPrinterColumns"]}
    assert list(columns) == ["Fabrics", "Nodes", "Ready", "Problems", "Age"]
    status = OBJECT_SCHEMA["properties"]["status"]["properties"]
    for name in ("Fabrics", "Nodes", "Problems"):
        assert columns[name].removeprefix(".status.") in status
    assert "status" in status["conditions"]["items"]["properties"]


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_means_the_same_in_a_cluster(path: Path) -> None:
    """The object that kubectl, which reads YAML 1.1, would send makes the same fabrics."""
    sent = yaml.safe_load(path.read_text(encoding="utf-8"))
    sent.setdefault("metadata", {})["name"] = "default"
    jsonschema.Draft4Validator(draft(OBJECT_SCHEMA)).validate(sent)
    stored = parse_object(sent, "default")
    assert stored.findings == ()
    assert stored.compiled == load_fabrics(path).compiled


def test_a_choice_may_be_a_word_that_kubectl_reads_as_a_boolean() -> None:
    """`hcoll: off` without quotes arrives as false, and is read as `off`."""
    words = {
        path: word
        for path, node in nodes(SPEC)
        for word in node.get("enum", ())
        if word in BOOLEANS and word is not False
    }
    assert words == {"defaults.hcoll": "off"}
    written = yaml.safe_load("fabrics: []\ndefaults: {hcoll: off}")
    assert written["defaults"]["hcoll"] is False
    jsonschema.Draft4Validator(draft(SPEC)).validate(written)
    assert FabricConfigurationSpec.model_validate(written).defaults.hcoll == "off"


def test_other_booleans_are_no_choice() -> None:
    """`hcoll: on` is invalid."""
    written = yaml.safe_load("fabrics: []\ndefaults: {hcoll: on}")
    assert not jsonschema.Draft4Validator(draft(SPEC)).is_valid(written)
    with pytest.raises(ValueError, match="hcoll"):
        FabricConfigurationSpec.model_validate(written)
