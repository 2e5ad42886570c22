"""Tests of loading a fabrics file, which reports all errors at once, in our words, with lines."""

from __future__ import annotations

from typing import Any

import pytest

from tests.fabrics_file import HEAD, below_spec
from tests.unit.config.files import fabric, findings, text
from webhook.config.findings import InvalidConfiguration, compiler_line
from webhook.config.load import parse_fabrics
from webhook.errors import ConfigError
from webhook.model.finding import Finding, Location

NOT_A_LIST = "match must be a mapping of its fields, not a list"


def refused(written: str) -> str:
    """Return the error text for a file that cannot be used."""
    with pytest.raises(InvalidConfiguration) as caught:
        parse_fabrics(written, "f.yaml")
    return str(caught.value)


def test_every_error_is_reported_with_file_line_path_value_and_remedy() -> None:
    """One run shows all errors in the order of their lines; warnings are kept separate."""
    written = below_spec(
        """\
defaults:
  fabric: v100
  hcol: off
fabrics:
- name: v100-ib
  hca: [mlx5_0]
  linkLayer: infiniband
  resources:
  - name: rdma/rdma-v100
    count: many
- name: a100-ib
  mode: sr-iov
  hcas: [mlx5_0]
"""
    )
    assert refused(written).splitlines() == [
        (
            "f.yaml:5: spec.defaults.fabric: no fabric is called 'v100' (did you mean v100-ib?); "
            "set defaults.fabric to the name of a fabric that the file defines, or remove "
            "defaults.fabric"
        ),
        "f.yaml:6: spec.defaults.hcol: unknown field (did you mean hcoll?)",
        "f.yaml:9: spec.fabrics[0].hca: unknown field (did you mean hcas?)",
        (
            "f.yaml:10: spec.fabrics[0].linkLayer: must be InfiniBand or Ethernet, not "
            "'infiniband' (did you mean InfiniBand?)"
        ),
        (
            "f.yaml:12: spec.fabrics[0].resources[0].name: 'rdma/rdma-v100' is not a resource that "
            "the device plugin can offer; write letters, digits and _, such as rdma/rdma_v100"
        ),
        (
            "f.yaml:13: spec.fabrics[0].resources[0].count: must be a whole number from 1 to 1000, "
            "or per-gpu, not 'many'"
        ),
        (
            "f.yaml:16: spec.fabrics[1].hcas: device names differ between pods in mode sr-iov; "
            "remove hcas"
        ),
    ]
    with pytest.raises(ConfigError) as caught:
        parse_fabrics(written, "f.yaml")
    assert isinstance(caught.value, InvalidConfiguration)
    assert [
        finding.location.line for finding in caught.value.findings if finding.level == "warning"
    ] == [14] * 2


SEVERAL = below_spec(
    """\
fabrics:
- name: a
  rack: 7
  match: {gpuProducts: [A]}
  hcas: ["mlx5_[0-3]"]
  pin: always
  resources:
  - name: rdma/a
    aliases: [rdma/b]
    gpusPerDevice: 2
- name: b
  match: {gpuProducts: [A]}
  hcas: [mlx5_0]
  resources:
  - name: rdma/b
    rack: 7
"""
)


def reported(written: str) -> list[tuple[str, str, int | None]]:
    """Return severity, path and line of all findings in a file that cannot be used."""
    with pytest.raises(InvalidConfiguration) as caught:
        parse_fabrics(written, "f.yaml")
    return [
        (finding.level, finding.location.path, finding.location.line)
        for finding in caught.value.findings
    ]


def test_an_unknown_field_hides_nothing() -> None:
    """Rules check a fabric, and compare it with others, as if it had no unknown field."""
    assert reported(SEVERAL) == [
        ("error", "spec.fabrics[0].rack", 6),
        ("error", "spec.fabrics[0].hcas[0]", 8),
        ("error", "spec.fabrics[0].pin", 9),
        ("error", "spec.fabrics[0].resources[0].aliases[0]", 12),
        ("warning", "spec.fabrics[0].resources[0].gpusPerDevice", 13),
        ("warning", "spec.fabrics[1].match", 15),
        ("error", "spec.fabrics[1].resources[0].rack", 19),
    ]


def test_without_its_unknown_fields_a_file_has_the_same_findings() -> None:
    """Each rule reports once, whether or not there are unknown fields."""
    cleaned = "\n".join(line for line in SEVERAL.splitlines() if "rack" not in line)
    expected = [
        (severity, path) for severity, path, _ in reported(SEVERAL) if not path.endswith("rack")
    ]
    assert [(severity, path) for severity, path, _ in reported(cleaned)] == expected


MISSPELLED = below_spec(
    """\
defaults: {fabric: b}
fabrics:
- name: a
  match: {gpuProducts: [A]}
  hcas: [mlx5_0]
  resources: [{name: rdma/a}]
- name: b
  match: {gpuProducts: [B]}
  hcas: [mlx5_0]
  resources: [{name: rdma/b}]
- name: c
  match: {gpuProducts: [C]}
  hcas: [mlx5_0]
  resources: [{name: rdma/c}]
"""
)


@pytest.mark.parametrize(
    ("correct", "misspelled", "path"),
    [
        ("{gpuProducts: [A]}", "{gpuProduct: [A]}", "spec.fabrics[0].match.gpuProduct"),
        ("  match: {gpuProducts: [A]}", "  gpuProducts: [A]", "spec.fabrics[0].gpuProducts"),
        ("hcas: [mlx5_0]", "hca: [mlx5_0]", "spec.fabrics[0].hca"),
        ("resources: [{name: rdma/a}]", "resource: []", "spec.fabrics[0].resource"),
    ],
)
def test_a_misspelled_field_is_the_only_finding(correct: str, misspelled: str, path: str) -> None:
    """No warning mentions the field's absence, neither in this fabric nor in a correct one."""
    assert parse_fabrics(MISSPELLED, "f.yaml").findings == ()
    assert [finding[:2] for finding in reported(MISSPELLED.replace(correct, misspelled, 1))] == [
        ("error", path)
    ]


@pytest.mark.parametrize(
    ("default", "path"),
    [
        ("defaults: {fabrc: b}", "spec.defaults.fabrc"),
        ("default: {fabric: b}", "spec.default"),
        ("defaults: {fabric: bb}", "spec.defaults.fabric"),
        ("defaults: {fabric: []}", "spec.defaults.fabric"),
        ("defaults: b", "spec.defaults"),
        ("fabric: b", "spec.fabric"),
    ],
)
def test_a_wrong_default_blames_no_fabric(default: str, path: str) -> None:
    """While the default fabric is unknown, no fabric is blamed."""
    alike = (
        MISSPELLED.replace("    match: {gpuProducts: [A]}\n", "")
        .replace("    match: {gpuProducts: [B]}\n", "")
        .replace("{gpuProducts: [C]}", "{gpuResources: [x.io/gpu]}")
    )
    assert parse_fabrics(alike, "f.yaml").findings == ()
    assert [
        finding[:2] for finding in reported(alike.replace("defaults: {fabric: b}", default))
    ] == [("error", path)]


def test_many_unknown_fields_are_not_compared() -> None:
    """Beyond a hundred, any unknown field counts as a misspelled field."""
    unknown = "".join(f"  zzz{number}: 1\n" for number in range(101))
    written = below_spec(f"fabrics:\n- name: a\n{unknown}")
    assert {severity for severity, _, _ in reported(written)} == {"error"}
    single = below_spec("fabrics:\n- name: a\n  zzz: 1\n")
    assert {severity for severity, _, _ in reported(single)} == {"error", "warning"}


def test_beside_a_wrong_value_an_unknown_field_keeps_comparing_rules_out() -> None:
    """If the same fabric has a wrong value too, only rules for single values are applied."""
    assert reported(SEVERAL.replace("pin: always", "pin: true")) == [
        ("error", "spec.fabrics[0].rack", 6),
        ("error", "spec.fabrics[0].hcas[0]", 8),
        ("error", "spec.fabrics[0].pin", 9),
        ("error", "spec.fabrics[1].resources[0].rack", 19),
    ]


def test_an_empty_list_of_fabrics_is_a_configuration() -> None:
    """`fabrics: []` gives no finding and no fabric."""
    loaded = parse_fabrics(below_spec("fabrics: []\n"), "f.yaml")
    assert (loaded.findings, dict(loaded.compiled.fabrics)) == ((), {})


def test_findings_stand_in_the_order_of_lines_and_paths() -> None:
    """Errors and warnings are sorted by line, and by path within a line."""
    devices = ", ".join(["ib0", *(f"mlx5_{number}" for number in range(1, 10)), "ib1", "MLX5_0-1"])
    written = below_spec(
        f"""\
fabrics:
- name: ib
  hcas: [{devices}]
  resources: [{{name: nvidia.com/h200}}]
  env: {{NCCL_P2P_DISABLE: 1, NCCL_IB_DISABLE: 1}}
"""
    )
    with pytest.raises(InvalidConfiguration) as caught:
        parse_fabrics(written, "f.yaml")
    messages = [compiler_line(finding).rpartition("; ")[0] for finding in caught.value.findings]
    assert messages == [
        "f.yaml:6: warning: spec.fabrics[0].hcas[0]: 'ib0' looks like a network interface",
        "f.yaml:6: warning: spec.fabrics[0].hcas[10]: 'ib1' looks like a network interface",
        "f.yaml:6: error: spec.fabrics[0].hcas[11]: 'MLX5_0-1' is read as one name",
        (
            "f.yaml:6: warning: spec.fabrics[0].hcas[11]: 'MLX5_0-1' has capitals, and case "
            "matters (did you mean mlx5_0-1?)"
        ),
        (
            "f.yaml:7: warning: spec.fabrics[0].resources[0].name: 'nvidia.com/h200' looks like a "
            "GPU"
        ),
        "f.yaml:8: error: spec.fabrics[0].env.NCCL_IB_DISABLE: '1' switches RDMA off",
        (
            "f.yaml:8: warning: spec.fabrics[0].env.NCCL_P2P_DISABLE: is for debugging, and NCCL "
            "chooses better values itself"
        ),
    ]


def test_warnings_come_with_the_fabrics() -> None:
    """A file that has only warnings is used, and its warnings have lines too."""
    written = below_spec("fabrics:\n- name: ib\n  hcas: [mlx5_0]\n")
    assert parse_fabrics(written, "f.yaml").findings == (
        Finding(
            "warning",
            "NoResource",
            "resources is empty, so no device gets into the pod",
            "Set resources[].name to the resource that the device plugin offers, or, if pods get "
            "the device in another way, set resources: [].",
            location=Location(file="f.yaml", line=5, path="spec.fabrics[0].resources"),
        ),
    )


@pytest.mark.parametrize(
    ("written", "message"),
    [
        (
            "",
            (
                "f.yaml: the file is empty; a fabrics file begins with apiVersion: "
                "rdma.lab/v1alpha1 and kind: FabricConfiguration"
            ),
        ),
        (
            "# nothing\n---\n",
            (
                "f.yaml: the file is empty; a fabrics file begins with apiVersion: "
                "rdma.lab/v1alpha1 and kind: FabricConfiguration"
            ),
        ),
        ("\n- a", "f.yaml:2: the file is a list, not a mapping"),
        ("fabrics", "f.yaml:1: the file is 'fabrics', not a mapping"),
        (
            below_spec("fabrics: []\n") + "---\nx: 1",
            "f.yaml:6: the file contains several documents; a fabrics file is one document",
        ),
        (
            "fabrics: []",
            (
                "f.yaml:1: apiVersion: is missing; write apiVersion: rdma.lab/v1alpha1\n"
                "f.yaml:1: kind: is missing; write kind: FabricConfiguration"
            ),
        ),
        (
            "ApiVersion: rdma.lab/v1alpha1\nknd: FabricConfiguration\nfabrics: []",
            (
                "f.yaml:1: apiVersion: is missing; write apiVersion: rdma.lab/v1alpha1 instead of "
                "'ApiVersion'\n"
                "f.yaml:1: kind: is missing; write kind: FabricConfiguration instead of 'knd'"
            ),
        ),
        (
            "apiVersion: rdma.lab/v1\nkind: FabricConfiguration",
            "f.yaml:1: apiVersion: must be rdma.lab/v1alpha1, not 'rdma.lab/v1'",
        ),
        (
            below_spec("fabric: []\n").replace("FabricConfiguration", "Pod"),
            "f.yaml:2: kind: must be FabricConfiguration, not 'Pod'",
        ),
        (HEAD, "f.yaml:1: spec: is missing; write spec, with fabrics below it"),
        (
            below_spec("fabrics:\n"),
            ("f.yaml:4: spec.fabrics: is missing (the fabrics; `[]` if there are none yet)"),
        ),
        (
            below_spec("fabrics: {v100: {}}"),
            (
                "f.yaml:4: spec.fabrics: must be a list (each item on a line that begins with "
                "`- `, or as [a, b]), not a mapping"
            ),
        ),
        (
            below_spec("fabrics: [v100]"),
            ("f.yaml:4: spec.fabrics[0]: must be a mapping of its fields, not 'v100'"),
        ),
        (
            below_spec("fabrics: []\nfabrics: []"),
            ("f.yaml:5: 'fabrics' is here and on line 4; remove one"),
        ),
    ],
)
def test_a_file_that_is_none_gets_one_clear_error(written: str, message: str) -> None:
    """If the file as a whole is wrong, nothing is reported about its fields."""
    assert refused(written) == message


@pytest.mark.parametrize(
    ("fields", "finding"),
    [
        (
            {"name": ...},
            (
                "spec.fabrics[0].name",
                (
                    "name is missing (name, as in the annotation "
                    "`rdma.lab/fabric`: lowercase letters, digits and `-`)"
                ),
            ),
        ),
        (
            {"gpuResources": []},
            ("spec.fabrics[0].gpuResources", "unknown field here; it belongs in fabrics[].match"),
        ),
        (
            {"match": {"hcas": []}},
            ("spec.fabrics[0].match.hcas", "unknown field here; it belongs in fabrics[]"),
        ),
        (
            {"match": {"nvlink": 1}},
            (
                "spec.fabrics[0].match.nvlink",
                (
                    "unknown field; the fields here are gpuResources, deviceClasses, "
                    "gpuProducts, nodeLabels"
                ),
            ),
        ),
        (
            {"qos": {"zzz": None}},
            (
                "spec.fabrics[0].qos.zzz",
                (
                    "unknown field; the fields here are trafficClass, serviceLevel, "
                    "fifoTrafficClass, gidIndex, pkey"
                ),
            ),
        ),
        (
            {"linkLayer": "RoCE"},
            (
                "spec.fabrics[0].linkLayer",
                "linkLayer must be InfiniBand or Ethernet, not 'RoCE' (did you mean Ethernet?)",
            ),
        ),
        (
            {"mode": "sriov"},
            (
                "spec.fabrics[0].mode",
                (
                    "mode must be one of shared-device, host-network, sr-iov, host-device, dra, "
                    "not 'sriov' (did you mean sr-iov?)"
                ),
            ),
        ),
        ({"pin": True}, ("spec.fabrics[0].pin", "pin must be never or always, not true")),
        (
            {"injectResources": "yes"},
            ("spec.fabrics[0].injectResources", "injectResources must be true or false, not 'yes'"),
        ),
        (
            {"hcas": "mlx5_0"},
            (
                "spec.fabrics[0].hcas",
                "hcas must be a list, not 'mlx5_0'; write `[mlx5_0]`",
            ),
        ),
        (
            {"hcas": "mlx5_0, mlx5_1"},
            (
                "spec.fabrics[0].hcas",
                "hcas must be a list, not 'mlx5_0, mlx5_1'; write `[mlx5_0, mlx5_1]`",
            ),
        ),
        (
            {"match": [{"gpuProducts": []}]},
            ("spec.fabrics[0].match", f"{NOT_A_LIST}; leave out the dash"),
        ),
        (
            {"match": ["nvidia.com/gpu"]},
            ("spec.fabrics[0].match", f"{NOT_A_LIST}; write each field as NAME: VALUE"),
        ),
        (
            {"match": []},
            ("spec.fabrics[0].match", f"{NOT_A_LIST}; write each field as NAME: VALUE"),
        ),
        (
            {"env": ["A=1", "B=x=y"]},
            ("spec.fabrics[0].env", 'env must be a mapping, not a list; write `{A: "1", B: x=y}`'),
        ),
        (
            {"env": [{"name": "NCCL_DEBUG", "value": "INFO"}, {"name": "A", "value": True}]},
            (
                "spec.fabrics[0].env",
                'env must be a mapping, not a list; write `{NCCL_DEBUG: INFO, A: "true"}`',
            ),
        ),
        (
            {"env": [{"A": 1}, {"B": None}, {"C": "x"}, {"D": "y"}, {"E": "z"}]},
            (
                "spec.fabrics[0].env",
                'env must be a mapping, not a list; write `{A: "1", B: "", C: x, D: "y", ...}`',
            ),
        ),
        (
            {"env": [{"name": "A", "valueFrom": {}}]},
            ("spec.fabrics[0].env", "env must be a mapping of names to values, not a list"),
        ),
        (
            {"env": [[]]},
            ("spec.fabrics[0].env", "env must be a mapping of names to values, not a list"),
        ),
        (
            {"env": [{"A": []}]},
            ("spec.fabrics[0].env", "env must be a mapping of names to values, not a list"),
        ),
        (
            {"-mode": "sr-iov"},
            (
                'spec.fabrics[0]["-mode"]',
                "unknown field (a dash needs a space after it; write `- mode`)",
            ),
        ),
        (
            {"env": {"A": None}},
            ("spec.fabrics[0].env.A", 'A has no value; write "" for an empty string'),
        ),
        ({"env": {"A": {}}}, ("spec.fabrics[0].env.A", "A must be a string, not a mapping")),
        (
            {"rateGbps": "100"},
            (
                "spec.fabrics[0].rateGbps",
                "rateGbps must be a whole number, not '100'; remove the quotes",
            ),
        ),
        (
            {"rateGbps": 12.5},
            ("spec.fabrics[0].rateGbps", "rateGbps must be a whole number, not '12.5'"),
        ),
        (
            {"rateGbps": "-5"},
            (
                "spec.fabrics[0].rateGbps",
                "rateGbps must be a whole number, not '-5'; remove the quotes",
            ),
        ),
        (
            {"rateGbps": "٣"},
            ("spec.fabrics[0].rateGbps", "rateGbps must be a whole number, not '٣'"),
        ),
        (
            {"rateGbps": "true"},
            ("spec.fabrics[0].rateGbps", "rateGbps must be a whole number, not 'true'"),
        ),
        (
            {"rateGbps": 10**19},
            (
                "spec.fabrics[0].rateGbps",
                "rateGbps must be a whole number, not '10000000000000000000'",
            ),
        ),
        ({"rateGbps": 0}, ("spec.fabrics[0].rateGbps", "0 is too small; the minimum is 1")),
        (
            {"qos": {"trafficClass": 256}},
            ("spec.fabrics[0].qos.trafficClass", "256 is too large; the maximum is 255"),
        ),
        (
            {"qos": {"pkey": "0x8000"}},
            (
                "spec.fabrics[0].qos.pkey",
                (
                    "'0x8000' is not a partition key; write 0x1 to 0x7fff, or 0x8001 to 0xffff "
                    "with the membership bit"
                ),
            ),
        ),
        (
            {"libraries": ["nvshm"]},
            (
                "spec.fabrics[0].libraries[0]",
                (
                    "libraries[0] must be one of nccl, ucx, gloo, nvshmem, mooncake, openmpi, "
                    "not 'nvshm' (did you mean nvshmem?)"
                ),
            ),
        ),
        (
            {"hcas": [None]},
            ("spec.fabrics[0].hcas[0]", 'hcas[0] has no value; write "" for an empty string'),
        ),
    ],
)
def test_pydantics_findings_are_in_our_words(
    fields: dict[str, Any], finding: tuple[str, str]
) -> None:
    """A wrong type, choice, range or name is reported with its value and the allowed values."""
    assert findings(text(fabric(**fields))) == [("error", *finding)]


def test_a_wrong_default_is_one_error() -> None:
    """It is reported once, at its own path."""
    assert findings(text(fabric(), defaults={"memlock": "unlimted"})) == [
        (
            "error",
            "spec.defaults.memlock",
            (
                "memlock must be one of unknown, limited, unlimited, nri, not 'unlimted' "
                "(did you mean unlimited?)"
            ),
        )
    ]


@pytest.mark.parametrize(
    ("names", "hint"),
    [
        ((), "the file has none"),
        (("far",), "the only fabric is far"),
        (("far", "east"), "the fabrics are east, far"),
    ],
    ids=("none", "one", "two"),
)
def test_an_unknown_default_lists_the_fabrics(names: tuple[str, ...], hint: str) -> None:
    """The user chooses among them, or learns that there is no choice."""
    written = text(*(fabric(name=name) for name in names), defaults={"fabric": "v100"})
    level, path, message = findings(written)[0]
    assert (level, path) == ("error", "spec.defaults.fabric")
    assert message.startswith(f"no fabric is called 'v100' ({hint}); ")


def test_a_prefix_of_drivers_names_is_no_misspelling() -> None:
    """`mlx` also selects mlx5_0: only a prefix that selects no driver's name is reported."""
    for prefix, intended in (("mlx", ""), ("mlx_", "mlx5_")):
        messages = [
            message for *_, message in findings(text(fabric(hcas=[], hcaPrefixes=[prefix])))
        ]
        hint = f"no driver's names begin with {prefix!r} (did you mean {intended}?); "
        assert any(message.startswith(hint) for message in messages) is bool(intended)
        assert not any("drivers give" in message for message in messages)


def test_scalars_are_strings_where_strings_are_wanted() -> None:
    """`NCCL_CROSS_NIC: 1`, `enabled: true` and a numeric name need no quotes."""
    written = text(
        fabric("100", env={"A": 1, "B": True}, match={"nodeLabels": {"gpu": True}}),
    )
    loaded = parse_fabrics(written.replace('"100"', "100"), "f.yaml").compiled
    assert loaded.fabrics["100"].env.site_variables == (("A", "1"), ("B", "true"))
    assert loaded.fabrics["100"].node_labels == {"gpu": ("true",)}


def test_null_is_as_absent() -> None:
    """`sharedMemory: null` and a key without a value count as unset."""
    written = below_spec("defaults:\nfabrics:\n- name: ib\n  qos:\n  match: {gpuResources: null}\n")
    loaded = parse_fabrics(written, "f.yaml").compiled
    assert loaded == parse_fabrics(below_spec("fabrics: [{name: ib}]"), "f.yaml").compiled
