"""Tests of the messages about an object, which equal `check-config`'s about the same file."""

from __future__ import annotations

import json

import pytest

from webhook.config.findings import InvalidConfiguration, Truncation
from webhook.config.load import MAX_FABRICS, LoadedConfiguration, parse_fabrics
from webhook.preview.worker.operations import configuration_faults

FABRICS = [
    {"name": "ib", "resources": [{"name": "rdma/hca"}], "hcas": ["mlx5_0"]},
    {"name": "ib2", "hcass": ["mlx5_0"], "qos": {"pkey": 0}, "resources": [{"name": "rdma/a-b"}]},
    {"name": "\u202eib", "resources": [{"name": "rdma/hca", "count": "per-gpu"}], "hcas": ["x"]},
]


def configuration(fabrics: object) -> dict[str, object]:
    """Return an object."""
    return {
        "apiVersion": "rdma.lab/v1alpha1",
        "kind": "FabricConfiguration",
        "metadata": {"name": "default"},
        "spec": {"fabrics": fabrics},
    }


@pytest.mark.parametrize("count", [1, 2, 3])
def test_messages_are_those_of_the_file(count: int) -> None:
    """All errors and warnings are there, with the same words; a file's lines are left out."""
    item = configuration(FABRICS[:count])
    try:
        expected: LoadedConfiguration | InvalidConfiguration = parse_fabrics(
            json.dumps(item), "f.yaml"
        )
    except InvalidConfiguration as error:
        expected = error
    faults = configuration_faults(item)
    messages = [f"{path}: {sentence}" for path, sentence in (*faults.errors, *faults.warnings)]
    assert sorted(messages) == sorted(
        f"{finding.location.path}: {finding.text}" for finding in expected.findings
    )
    assert bool(faults.errors) == (count > 1)
    assert Truncation(faults.more_errors, faults.more_warnings) == expected.truncation


def test_surplus_errors_are_counted() -> None:
    """A hundred are shown, errors before warnings."""
    invalid = {"name": "A", "hcas": ["mlx5_0", "mlx5_0"], "resources": [{"name": "rdma/a"}]}
    faults = configuration_faults(configuration([invalid] * 120))
    assert (len(faults.errors), faults.more_errors) == (100, 259)
    assert (len(faults.warnings), faults.more_warnings) == (0, 119)


def test_an_error_without_a_field_is_about_the_object() -> None:
    """There is a maximum of fabrics."""
    faults = configuration_faults(configuration([{"name": "a"}] * (MAX_FABRICS + 1)))
    ((path, sentence),) = faults.errors
    assert path == "the object"
    assert f"the maximum is {MAX_FABRICS:,}" in sentence


def test_invisible_characters_are_shown() -> None:
    """They could make a terminal show something else."""
    faults = configuration_faults(configuration([{"name": "a", "x\u202e": 1}]))
    assert any("x\\u202e" in path for path, _ in faults.errors)
