"""A file of the first version becomes an object; its comments and its meaning stay."""

from __future__ import annotations

import json

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from tests.fabrics_file import HEAD, below_spec
from tests.unit.config.files import fabric, findings, text
from webhook.config.convert import converted
from webhook.config.findings import InvalidConfiguration
from webhook.config.load import LIMITS, object_text, parse_fabrics

OLD = """\
# Two generations of nodes.

apiVersion: rdma.lab/v1alpha1
# of ours
fabrics:   # the newest first
- name: ib
  hcas: [mlx5_0]

  resources: [{name: rdma/ib}]
  env:
    A: |
      one

      two
kind: FabricConfiguration

# What holds everywhere.

# The default.
defaults: {fabric: ib}
# The end.
"""
NEW = """\
# Two generations of nodes.

apiVersion: rdma.lab/v1alpha1
kind: FabricConfiguration
metadata:
  name: default

# What holds everywhere.

spec:
  # of ours
  fabrics:   # the newest first
  - name: ib
    hcas: [mlx5_0]

    resources: [{name: rdma/ib}]
    env:
      A: |
        one

        two
  # The default.
  defaults: {fabric: ib}
  # The end.
"""


def test_lines_are_moved_and_indented() -> None:
    """Comments stay above their key, and the order of the fields stays."""
    assert converted(OLD, LIMITS) == NEW


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_it_means_the_same(end: str) -> None:
    """The fabrics are the same, also those of Windows' line ends."""
    old = OLD.replace("\n", end)
    new = parse_fabrics(converted(old, LIMITS), "f.yaml")
    assert new.findings == ()
    assert new.fabrics == parse_fabrics(old, "f.yaml").fabrics


def test_an_object_is_left_as_it_is() -> None:
    """What has a spec is not touched, even if it has mistakes."""
    for written in (NEW, text(fabric(hca=[])), below_spec("fabric: []\n"), HEAD):
        assert converted(written, LIMITS) == written


def test_json_stays_json() -> None:
    """JSON has no comments to keep, so it is written anew."""
    spec = {"fabrics": [fabric()], "defaults": {"hcoll": "off"}}
    head = {"apiVersion": "rdma.lab/v1alpha1", "kind": "FabricConfiguration"}
    wanted = {**head, "metadata": {"name": "default"}, "spec": spec}
    assert json.loads(converted(json.dumps({**head, **spec}), LIMITS)) == wanted


@pytest.mark.parametrize(
    "old",
    [
        HEAD + "metadata: {labels: {a: b}}\nfabrics: []\n",
        HEAD + "fabrics: []",
        f"---\n{HEAD}fabrics: []\n",
        "--- {apiVersion: rdma.lab/v1alpha1, kind: FabricConfiguration,\nfabrics: [\n]}\n",
        f"{HEAD}fabrics: []\n...\n",
        f'{HEAD}defaults: {{fabric: "a\n  b"}}\nfabrics: [\n{{}}]\n',
        f"{HEAD}x: 1\nfabrics: []\n",
        "? apiVersion\n: rdma.lab/v1alpha1\n? kind\n: FabricConfiguration\n? fabrics\n: []\n",
    ],
)
def test_whatever_the_layout(old: str) -> None:
    """Where lines cannot simply be moved, the file is written anew; nothing is lost."""
    before, after = yaml.safe_load(old), yaml.safe_load(converted(old, LIMITS))
    head = {key: before.pop(key) for key in ("apiVersion", "kind")}
    metadata = before.pop("metadata", {"name": "default"})
    assert after == {**head, "metadata": metadata, "spec": before}


#: Numbers of more than 18 digits are read as text.
VALUES = st.text(max_size=8) | st.integers(-(10**9), 10**9) | st.none() | st.booleans()


@given(
    st.dictionaries(
        st.sampled_from(["defaults", "nvlink", "foreignNics", "x"]),
        VALUES | st.lists(VALUES, max_size=3) | st.dictionaries(st.text(max_size=5), VALUES),
        max_size=3,
    ),
    st.booleans(),
    st.integers(60, 120),
)
def test_any_values_stay(fields: dict[str, object], flow: bool, width: int) -> None:
    """Whatever the values and however they are written, they are the same below `spec`."""
    spec = {**fields, "fabrics": [fabric()]}
    head = {"apiVersion": "rdma.lab/v1alpha1", "kind": "FabricConfiguration"}
    old = yaml.safe_dump({**head, **spec}, default_flow_style=flow, width=width)
    try:
        new = converted(old, LIMITS)
    except InvalidConfiguration:
        return  # a key that is no plain word, which our files do not have
    assert yaml.safe_load(new)["spec"] == spec


def test_the_form_of_the_first_version_is_read_with_a_warning() -> None:
    """It says how to change it, and its paths are those of the file."""
    (found,) = findings(OLD)
    assert found[:2] == ("warning", "")
    assert "`rdma-webhook check-config --convert FILE` puts them below spec" in found[2]
    assert ("error", "fabrics[0].hca", "unknown field (did you mean hcas?)") in findings(
        OLD.replace("hcas", "hca")
    )


@pytest.mark.parametrize(
    ("written", "path", "said"),
    [
        (
            below_spec("fabrics: []\n") + "defaults: {}\n",
            "defaults",
            "unknown field here: it belongs in spec",
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
            "unknown field: the fields here are apiVersion, kind, metadata and spec",
        ),
        (
            below_spec("fabrics: []\n") + "metadata: {name: site}\n",
            "metadata.name",
            "must be default, not 'site': the webhook reads only the object of that name",
        ),
        (
            below_spec("fabrics: []\n") + "metadata: {name: }\n",
            "metadata.name",
            "must be default, not nothing: the webhook reads only the object of that name",
        ),
        (
            below_spec("fabrics: []\n") + "metadata: []\n",
            "metadata",
            "a list must be a mapping of its fields",
        ),
        (HEAD + "fabrics: []\nmetadata: 5\n", "metadata", "5 must be a mapping of its fields"),
        (HEAD + "spec: []\n", "spec", "a list must be a mapping of its fields"),
        (
            HEAD + "specs: {}\n",
            "spec",
            "is missing: write spec instead of 'specs', with fabrics below it",
        ),
    ],
)
def test_what_is_around_the_configuration_is_checked(written: str, path: str, said: str) -> None:
    """Kubernetes would drop a misspelled field without a word; here it is an error."""
    assert ("error", path, said) in findings(written)


def test_a_file_may_leave_out_the_name() -> None:
    """It is the only one that there can be."""
    labelled = {**json.loads(text(fabric())), "metadata": {"labels": {"a": "b"}}}
    assert findings(json.dumps(labelled)) == []


def test_what_kubectl_prints_is_a_file() -> None:
    """`kubectl get -o yaml` adds fields to `metadata`, and `status`."""
    metadata = {"name": "default", "generation": 2, "managedFields": []}
    printed = {**json.loads(text(fabric())), "metadata": metadata, "status": {"conditions": []}}
    assert findings(json.dumps(printed)) == []


def test_a_config_map_gives_the_file_that_it_holds() -> None:
    """`kubectl get configmap -o yaml` is what a site has that upgrades."""
    held = {"apiVersion": "v1", "kind": "ConfigMap", "data": {"fabrics.yaml": OLD}}
    assert object_text(yaml.safe_dump(held), "map.yaml") == NEW
    with pytest.raises(InvalidConfiguration):
        object_text("kind: Pod\n", "pod.yaml")
