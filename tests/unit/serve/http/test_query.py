from __future__ import annotations

import pytest

from webhook.errors import RequestError
from webhook.preview.fabrics.record import FABRICS_FORMATS
from webhook.preview.formats import FORMATS
from webhook.serve.http.query import PARAMETERS, Query, read_query, requested_format


def test_no_parameters() -> None:
    """Each parameter has a default."""
    assert read_query([]) == Query(namespace="default", labels={}, enable=False, output=None)


def test_all_parameters() -> None:
    """A label may be repeated, and its value may contain an equals sign."""
    query = read_query(
        [
            ("namespace", "lab"),
            ("namespace-label", "a=b=c"),
            ("namespace-label", "d="),
            ("enable", "True"),
            ("output", "yaml"),
        ]
    )

    assert query == Query("lab", {"a": "b=c", "d": ""}, enable=True, output=FORMATS[1])


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("color", "on", f"'color' is not a parameter; use {', '.join(PARAMETERS)}"),
        (
            "Enable",
            "true",
            f"'Enable' is not a parameter (did you mean enable?); use {', '.join(PARAMETERS)}",
        ),
        ("enable", "", "enable='': write true or false"),
        ("enable", "1", "enable='1': write true or false"),
        (
            "namespace",
            "",
            (
                "namespace='' is not a valid namespace name; write at most 63 lowercase letters, "
                "digits and -, without a - at either end"
            ),
        ),
        (
            "namespace",
            "A_B",
            (
                "namespace='A_B' is not a valid namespace name; write at most 63 lowercase "
                "letters, digits and -, without a - at either end"
            ),
        ),
        ("output", "xml", "output='xml': use one of json, yaml, text"),
        ("namespace-label", "=v", "namespace-label='=v': write KEY=VALUE"),
    ],
)
def test_invalid_parameters_are_refused(name: str, value: str, message: str) -> None:
    """Ignoring a parameter would answer a different question."""
    with pytest.raises(RequestError) as caught:
        read_query([(name, value)])

    assert (caught.value.status, str(caught.value)) == (400, message)


@pytest.mark.parametrize("name", ["namespace", "output"])
def test_long_values_are_cut(name: str) -> None:
    """The answer does not echo kilobytes."""
    with pytest.raises(RequestError) as caught:
        read_query([(name, "n" * 10_000)])

    assert len(str(caught.value)) < 200


def test_same_parameter_twice_is_refused() -> None:
    """It would be unclear which value counts."""
    with pytest.raises(RequestError, match="namespace is given 2 times; use it once"):
        read_query([("namespace", "a"), ("namespace", "b")])


def test_an_address_with_a_single_parameter() -> None:
    """It has its own formats, and refuses the parameters of others."""
    assert requested_format([], FABRICS_FORMATS) is None
    assert requested_format([("output", "wide")], FABRICS_FORMATS) is FABRICS_FORMATS[2]
    for given, message in {
        ("output", "yaml"): "output='yaml': use one of json, text, wide",
        ("enable", "true"): "'enable' is not a parameter; use output",
    }.items():
        with pytest.raises(RequestError) as caught:
            requested_format([given], FABRICS_FORMATS)
        assert (caught.value.status, str(caught.value)) == (400, message)
    with pytest.raises(RequestError, match="output is given 2 times; use it once"):
        requested_format([("output", "json"), ("output", "text")], FABRICS_FORMATS)
