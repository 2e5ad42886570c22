from __future__ import annotations

import json
from typing import Any

import pytest
import yaml

from tests.fabrics_file import HEAD
from webhook.config.custom_resource import JsonData
from webhook.config.findings import InvalidConfiguration
from webhook.config.load import (
    LIMITS,
    MAX_SPEC_BYTES,
    FabricsText,
    parse_fabrics,
    parse_object,
)
from webhook.text.yaml.tree import TextLimits

NAME = "fabricconfigurations/default"


def configured(*fabrics: Any, **fields: Any) -> dict[str, Any]:
    """Make an object as sent by the API server."""
    head = yaml.safe_load(HEAD)
    metadata = {"name": "default", "uid": "1", "generation": 3, "managedFields": [{"x": 1}]}
    return {**head, "metadata": metadata, "spec": {"fabrics": [*fabrics]}, "status": {}, **fields}


FABRIC = {
    "name": "v100-ib",
    "match": {"gpuResources": ["nvidia.com/v100"]},
    "mode": "shared-device",
    "resources": [{"name": "rdma/rdma_v100", "count": 1}],
    "linkLayer": "InfiniBand",
    "hcas": ["mlx5_0"],
}


def problems(item: dict[str, Any]) -> str:
    """Return the error for an object that is refused."""
    with pytest.raises(InvalidConfiguration) as refused:
        parse_object(item, NAME)
    return str(refused.value)


def test_an_object_is_read_as_the_file_is() -> None:
    """Fabrics, hash and warnings equal the text's, except for the lines."""
    item = configured(FABRIC)
    loaded = parse_object(item, NAME)
    file = parse_fabrics(yaml.safe_dump(item), "fabrics.yaml")
    assert loaded.compiled == file.compiled
    unplaced = [
        finding._replace(location=finding.location._replace(file=NAME, line=None))
        for finding in file.findings
    ]
    assert unplaced == [*loaded.findings]
    assert parse_object(yaml.safe_load(loaded.fabrics_text.text), NAME) == loaded


def test_another_process_gets_what_was_read() -> None:
    """A file is passed on as its text, an object as JSON with only the fields that are read."""
    item = configured(FABRIC)
    text = yaml.safe_dump(item)
    assert parse_fabrics(text, "fabrics.yaml").fabrics_text == FabricsText(text)
    read = {**yaml.safe_load(HEAD), "spec": item["spec"], "metadata": {"name": "default"}}
    loaded = parse_object(item, NAME)
    assert loaded.fabrics_text == FabricsText(json.dumps(read), is_object=True)
    assert loaded.name == NAME


def test_findings_of_an_object_have_paths_and_no_lines() -> None:
    """The path begins at spec, as in `kubectl explain`; errors come in the order of paths."""
    invalid = {**FABRIC, "name": "b", "mode": "shared", "linkLayer": "Infiniband"}
    first, second = problems(configured(FABRIC, invalid)).splitlines()
    assert first.startswith(f"{NAME}: spec.fabrics[1].linkLayer: ")
    assert second.startswith(f"{NAME}: spec.fabrics[1].mode: ")


def test_another_kind_is_refused() -> None:
    """The kind and its version must be known to this program."""
    assert "apiVersion: must be rdma.lab/v1alpha1" in problems(
        configured(FABRIC, apiVersion="rdma.lab/v1")
    )


def test_kind_and_version_are_refused_together() -> None:
    """Each has its line."""
    lines = problems(configured(FABRIC, apiVersion="v1", kind="Pod")).splitlines()
    assert [line.split(": ")[1] for line in lines] == ["apiVersion", "kind"]


def test_an_object_of_another_name_is_refused() -> None:
    """The webhook reads only the object called default."""
    assert "metadata.name" in problems(configured(FABRIC, metadata={"name": "other"}))


def nested(levels: int) -> Any:
    """Make a value of this many levels."""
    value: Any = 1
    for _ in range(levels - 1):
        value = {"a": value}
    return value


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ({"x": nested(9_000)}, "is nested deeper than 100 levels"),
        ({"x": [1] * LIMITS.values}, "contains more than the maximum of 35,000 values"),
    ],
    ids=["depth", "values"],
)
def test_the_limits_of_a_file_hold_for_an_object(spec: Any, message: str) -> None:
    """An object in etcd may have 1.5 MiB of any shape: it is refused before it is checked."""
    assert problems(configured(spec=spec)) == f"{NAME}: {message}"


@pytest.mark.parametrize("less", ["values", "depth"])
def test_an_object_may_be_as_large_as_its_limits(less: str) -> None:
    """It has three values: the mapping, its key and its content."""
    limits = TextLimits(size=10, values=3, depth=2)
    assert JsonData({"é": "ü"}, NAME, limits).text == '{"é": "ü"}'
    smaller = limits._replace(**{less: getattr(limits, less) - 1})
    with pytest.raises(InvalidConfiguration):
        JsonData({"é": "ü"}, NAME, smaller)


def test_a_spec_has_a_maximum_size() -> None:
    """The bytes of its JSON count, without spaces, in a file as in an object."""
    empty = len('{"fabrics":[],"x":""}')
    for text, size in (
        ("a" * (MAX_SPEC_BYTES - empty), MAX_SPEC_BYTES),
        ("\u00e9" * (MAX_SPEC_BYTES // 2), MAX_SPEC_BYTES + empty),
        ("a" * (MAX_SPEC_BYTES - empty + 1), MAX_SPEC_BYTES + 1),
    ):
        spec = {"fabrics": [], "x": text}
        too_large = f"the spec has {size:,} bytes as JSON; the maximum is 163,840, since the object"
        message = "spec.x: unknown field" if size == MAX_SPEC_BYTES else too_large
        assert message in problems(configured(spec=spec))
        with pytest.raises(InvalidConfiguration) as error:
            parse_fabrics(yaml.safe_dump(configured(spec=spec), allow_unicode=True), NAME)
        assert message in str(error.value)


def test_the_limits_are_reached_only_beyond_them() -> None:
    """An object of exactly the maximum depth is read: only its unknown field is refused."""
    deepest = nested(LIMITS.depth - 2)
    assert "spec.x: unknown field" in problems(configured(spec={"fabrics": [], "x": deepest}))
    assert "deeper" in problems(configured(spec={"fabrics": [], "x": nested(LIMITS.depth - 1)}))
