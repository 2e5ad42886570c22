"""Plain scalars are read as by kubectl, and values are written so that they read the same."""

from __future__ import annotations

import pytest

from webhook.text.yaml.emit import inline, literal_header
from webhook.text.yaml.values import kubectl_value, literal_value


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("", None),
        ("~", None),
        ("Null", None),
        ("true", True),
        ("yes", True),
        ("y", True),
        ("On", True),
        ("off", False),
        ("N", False),
        ("TRUE", True),
        ("tRUE", "tRUE"),
        ("yEs", "yEs"),
        ("0", 0),
        ("-12", -12),
        ("+5", 5),
        ("1_000", 1000),
        ("0x1F", 31),
        ("0b101", 5),
        ("0777", 511),
        ("-0o17", -15),
        ("08", 8),
        ("18446744073709551615", 18446744073709551615),
        ("36893488147419103233", 36893488147419103232),
        ("1e3", 1000),
        ("1.50", 1.5),
        (".5", 0.5),
        ("5.", 5),
        ("1e30", 1e30),
        ("1e999", "1e999"),
        ("9" * 5000, "9" * 5000),
    ],
)
def test_words_and_numbers_are_what_go_yaml_makes_of_them(text: str, value: object) -> None:
    """go-yaml v2 has YAML 1.1 booleans, octal numbers, underscores and exponents."""
    converted = kubectl_value(text)
    assert (converted, type(converted)) == (value, type(value))


@pytest.mark.parametrize(
    "text",
    [
        "2024-01-01",
        "1:30",
        "22:22",
        "10Gi",
        "1.2.3",
        "-",
        "--",
        ".",
        "0x",
        "0b2",
        "_1",
        "=",
        "<<",
        "1e",
    ],
)
def test_dates_times_and_quantities_stay_strings(text: str) -> None:
    """PyYAML would make a date or 90 minutes of some of these; kubectl does not."""
    assert kubectl_value(text) == text


@pytest.mark.parametrize("text", [".inf", "-.INF", ".NaN"])
def test_infinities_are_refused(text: str) -> None:
    """JSON has no infinity, so it cannot be sent to the API server."""
    with pytest.raises(ValueError, match="not a number in JSON"):
        kubectl_value(text)


@pytest.mark.parametrize(
    ("text", "to_kubectl"),
    [
        ("on", True),
        ("y", True),
        ("TRUE", True),
        ("010", 8),
        ("0x8001", 32769),
        ("1_000", 1000),
        ("+1", 1),
        ("1e3", 1000),
        ("1.50", 1.5),
        ("9" * 19, 9999999999999999999),
    ],
)
def test_a_fabrics_file_keeps_what_kubectl_converts(text: str, to_kubectl: object) -> None:
    """A converted value loses its text, which a fabrics file needs; kubectl sends the value."""
    assert (literal_value(text), kubectl_value(text)) == (text, to_kubectl)


@pytest.mark.parametrize("text", ["", "~", "Null", "true", "false", "0", "-12", "9" * 18, "a"])
def test_most_words_are_the_same_to_both(text: str) -> None:
    """These are null, true, false, decimal integers, and strings in every dialect."""
    assert (literal_value(text), type(literal_value(text))) == (
        kubectl_value(text),
        type(kubectl_value(text)),
    )


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "null"),
        (True, "true"),
        (1, "1"),
        (1.5, "1.5"),
        ("WARN", "WARN"),
        ("10Gi", "10Gi"),
        ("500m", "500m"),
        ("-mca", "-mca"),
        ("--tune=a.conf", "--tune=a.conf"),
        ("---", '"---"'),
        ("-.inf", '"-.inf"'),
        ("/etc/nccl.conf", "/etc/nccl.conf"),
        ("rdma/rdma_v100", "rdma/rdma_v100"),
        ("mlx5_0:1", "mlx5_0:1"),
        ("true", '"true"'),
        ("y", '"y"'),
        ("1", '"1"'),
        ("", '""'),
        ("1e3", '"1e3"'),
        ("=mlx5_0,mlx5_1", '"=mlx5_0,mlx5_1"'),
        ("metadata.annotations['a']", "\"metadata.annotations['a']\""),
        ('{"a":"it\'s"}', "'{\"a\":\"it''s\"}'"),
        ("a\\b", "'a\\b'"),
        ("a\\\n", '"a\\\\\\n"'),
        ("a: b", '"a: b"'),
        ("a:", '"a:"'),
        ("\x85\u2028", '"\\u0085\\u2028"'),
    ],
)
def test_scalars_are_quoted_where_they_could_be_mistaken(value: object, text: str) -> None:
    """Plain where all readers agree, in single quotes around JSON, else in double quotes."""
    assert inline(value) == text  # type: ignore[arg-type]


def test_colons_are_quoted_in_flow_collections() -> None:
    """Some readers take `a:b` for an entry in a flow collection."""
    assert inline("mlx5_0:1", flow=True) == '"mlx5_0:1"'


@pytest.mark.parametrize(
    ("text", "header"),
    [
        ("a\nb\n", "|"),
        ("a\nb", "|-"),
        ("\na\n", "|"),
        ("a", None),
        ("\n", None),
        ("a\n\n", None),
        (" a\nb\n", None),
        ("a\x07\nb\n", None),
        ("a\r\nb\n", None),
    ],
)
def test_literal_blocks_are_for_plain_lines(text: str, header: str | None) -> None:
    """Text that a literal block would change (leading spaces, control characters) is quoted."""
    assert literal_header(text) == header
