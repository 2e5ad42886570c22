"""Warnings of check-config about values that the API server would reject in an object."""

from __future__ import annotations

from typing import Any

import pytest
from jsonschema import Draft202012Validator

from tests.case_names import case_name
from tests.fabrics_file import single_fabric
from webhook.config.crd import definition
from webhook.config.custom_resource import type_errors
from webhook.config.findings import InvalidConfiguration
from webhook.config.load import parse_fabrics
from webhook.model.pod import dotted

FILE = (
    single_fabric("h100", "nvidia.com/h100", "rdma/rdma_h100") + "    libraries: [nccl]\n    %s\n"
)
CROSS_NIC = "env.NCCL_CROSS_NIC: kubectl sends the"
QUOTE = "but the API server requires a string; put the value in quotes"


def warned(line: str, *, for_kubectl_apply: bool = True) -> list[str]:
    """Return the warnings about a line of a fabric, each with its line number and its path."""
    findings = parse_fabrics(FILE % line, "f.yaml", for_kubectl_apply=for_kubectl_apply).findings
    return [
        f"{finding.location.line} {finding.location.path}: {finding.text}" for finding in findings
    ]


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("env: {NCCL_CROSS_NIC: 1}", f"{CROSS_NIC} number 1, {QUOTE}"),
        (
            "env: {NCCL_CROSS_NIC: true}",
            f"{CROSS_NIC} boolean true, {QUOTE}",
        ),
        (
            "env: {NCCL_CROSS_NIC: on}",
            f"{CROSS_NIC} boolean true, {QUOTE}",
        ),
        ("env: {NCCL_CROSS_NIC: 010}", f"{CROSS_NIC} number 8, {QUOTE}"),
        (
            "match: {nodeLabels: {pool: a100-*}}",
            (
                "match.nodeLabels.pool: the API server requires a list, not 'a100-*'; write "
                '`["a100-*"]`'
            ),
        ),
        (
            "match: {nodeLabels: {pool: 12}}",
            'match.nodeLabels.pool: the API server requires a list, not 12; write `["12"]`',
        ),
        (
            "match: {nodeLabels: {pool: [12]}}",
            f"match.nodeLabels.pool[0]: kubectl sends the number 12, {QUOTE}",
        ),
    ],
    ids=case_name,
)
def test_a_value_of_another_type(line: str, says: str) -> None:
    """The value is shown as kubectl, which reads YAML 1.1, would send it, with its line."""
    text = (
        FILE.replace("    match: {gpuResources: [nvidia.com/h100]}\n", "")
        if "match" in line
        else FILE
    )
    number = 10 - ("match" in line)
    findings = parse_fabrics(text % line, "f.yaml", for_kubectl_apply=True).findings
    assert f"{number} spec.fabrics[0].{says}" in [
        f"{finding.location.line} {finding.location.path}: {finding.text}" for finding in findings
    ]


@pytest.mark.parametrize(
    "line",
    [
        'env: {NCCL_CROSS_NIC: "1", NCCL_NET_PLUGIN: none}',
        "resources: [{name: rdma/rdma_h100, count: 2}]",
        "memlock: null",
        "check: off",
        "qos: {pkey: 0x1}",
        "env: {NCCL_CROSS_NIC: null}",
    ],
    ids=case_name,
)
def test_what_the_api_server_takes_over(line: str) -> None:
    """Accepted values and dropped values, such as a null, cause no warning."""
    text = (
        FILE.replace("    resources: [{name: rdma/rdma_h100}]\n", "")
        if "resources" in line
        else FILE
    )
    try:
        findings = parse_fabrics(text % line, "f.yaml", for_kubectl_apply=True).findings
    except InvalidConfiguration as error:
        findings = error.findings
    assert not [finding for finding in findings if "API server" in finding.text]


def test_only_of_a_file_that_is_meant_to_be_applied() -> None:
    """`serve --config` reads the file without applying it."""
    assert len(warned("env: {NCCL_CROSS_NIC: 1}")) == 1
    assert warned("env: {NCCL_CROSS_NIC: 1}", for_kubectl_apply=False) == []


def test_an_error_is_reported_alone() -> None:
    """An invalid value needs no warning about its type."""
    with pytest.raises(InvalidConfiguration) as caught:
        parse_fabrics(FILE % "networks: 7", "f.yaml", for_kubectl_apply=True)
    (only,) = caught.value.findings
    assert (only.level, only.location.path) == ("error", "spec.fabrics[0].networks")


#: A value of each type at each place where the model takes several.
SPEC: dict[str, Any] = {
    "defaults": {"hcoll": False, "check": False, "fabric": 7},
    "fabrics": [
        {
            "name": "a",
            "match": {"gpuProducts": "H100", "nodeLabels": {"x": "y", "z": ["w", 1]}},
            "resources": [{"name": "rdma/a", "count": 1}, {"name": "rdma/b", "count": "per-gpu"}],
            "env": {"A": 1, "B": True, "C": "c", "D": 1.5},
            "nodeSelector": {"zone": 3},
            "qos": {"pkey": "0x1"},
            "unknown": {"kept": 1},
        }
    ],
}


def test_it_is_the_definitions_own_schema() -> None:
    """Another validator finds the same errors with the schema of manifests/crd."""
    (version,) = definition()["spec"]["versions"]
    schema = version["schema"]["openAPIV3Schema"]["properties"]["spec"]
    errors = Draft202012Validator(schema).iter_errors(SPEC)
    theirs = {dotted(tuple(error.absolute_path)) for error in errors if error.validator == "type"}
    assert {dotted(rejected.path) for rejected in type_errors(SPEC)} == theirs != set()
