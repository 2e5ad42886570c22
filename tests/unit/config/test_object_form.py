"""The fields of a Kubernetes object around the configuration in a fabrics file."""

from __future__ import annotations

import json

import pytest

from tests.fabrics_file import HEAD, below_spec
from tests.unit.config.files import fabric, findings, text
from webhook.config.findings import InvalidConfiguration
from webhook.config.load import parse_fabrics

FLAT = (
    HEAD
    + """\
# The newest first.
fabrics:
- name: ib
  hca: [mlx5_0]
defaults: {fabric: ib}
"""
)


@pytest.mark.parametrize("spec", ["", "spec:\n", "spec: null\n"])
def test_fields_outside_spec_are_errors_with_their_lines(spec: str) -> None:
    """Each error names its place and the remedy; anything below is not read."""
    with pytest.raises(InvalidConfiguration) as caught:
        parse_fabrics(FLAT.replace("# The newest first.\n", spec or "# No spec.\n"), "f.yaml")
    assert str(caught.value).splitlines() == [
        "f.yaml:4: fabrics: is a field of spec; put it below `spec:`, indented",
        "f.yaml:7: defaults: is a field of spec; put it below `spec:`, indented",
    ]


@pytest.mark.parametrize(
    ("written", "path", "message"),
    [
        (
            below_spec("fabrics: []\n") + "defaults: {}\n",
            "defaults",
            "defaults is a field of spec; put it below `spec:`, indented",
        ),
        (
            below_spec("fabrics: []\n") + "metdata: {}\n",
            "metdata",
            "unknown field (did you mean metadata?)",
        ),
        (
            below_spec("fabrics: []\n") + "specs: {}\n",
            "specs",
            "unknown field (did you mean spec?)",
        ),
        (
            below_spec("fabrics: []\n") + "zzz: {}\n",
            "zzz",
            "unknown field; the fields here are apiVersion, kind, metadata and spec",
        ),
        (
            below_spec("fabrics: []\n") + "metadata: {name: site}\n",
            "metadata.name",
            (
                "name must be default, not 'site', since the webhook reads only the object named "
                "default"
            ),
        ),
        (
            below_spec("fabrics: []\n") + "metadata: {name: }\n",
            "metadata.name",
            (
                "name must be default, not nothing, since the webhook reads only the object named "
                "default"
            ),
        ),
        (
            below_spec("fabrics: []\n") + "metadata: []\n",
            "metadata",
            "metadata must be a mapping of its fields, not a list",
        ),
        (
            HEAD + "spec: {}\nmetadata: 5\n",
            "metadata",
            "metadata must be a mapping of its fields, not 5",
        ),
        (HEAD + "spec: []\n", "spec", "spec must be a mapping of its fields, not a list"),
        (
            HEAD + "specs: {}\n",
            "spec",
            "spec is missing; write spec instead of 'specs', with fabrics below it",
        ),
    ],
)
def test_what_is_around_the_configuration_is_checked(written: str, path: str, message: str) -> None:
    """Kubernetes would silently drop a misspelled field; here it is an error."""
    assert ("error", path, message) in findings(written)


def test_a_file_may_leave_out_the_name() -> None:
    """There is only one possible name."""
    labeled = {**json.loads(text(fabric())), "metadata": {"labels": {"a": "b"}}}
    assert findings(json.dumps(labeled)) == []


def test_what_kubectl_prints_is_a_file() -> None:
    """`kubectl get -o yaml` adds fields to `metadata`, and `status`."""
    metadata = {"name": "default", "generation": 2, "managedFields": []}
    printed = {**json.loads(text(fabric())), "metadata": metadata, "status": {"conditions": []}}
    assert findings(json.dumps(printed)) == []
