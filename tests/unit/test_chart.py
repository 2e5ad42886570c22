"""The chart agrees with the manifests, with itself and with its page; no Helm runs here."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.generated_pages import DOCS, assert_up_to_date
from webhook import __version__

MANIFESTS = Path(__file__).parents[2] / "manifests"
CHART = MANIFESTS / "chart"
COPIES = CHART / "files"
VALUES_TEXT = (CHART / "values.yaml").read_text(encoding="utf-8")
VALUES: dict[str, Any] = yaml.safe_load(VALUES_TEXT)
SCHEMA: dict[str, Any] = json.loads((CHART / "values.schema.json").read_text(encoding="utf-8"))
TEMPLATES = "\n".join(
    file.read_text(encoding="utf-8") for file in sorted((CHART / "templates").rglob("*.*"))
)
#: Values that Helm itself defines.
HELM = {"global"}


def copied() -> list[str]:
    """Return the files of the manifests that the chart has copies of."""
    return sorted(str(file.relative_to(COPIES)) for file in COPIES.rglob("*.*"))


@pytest.mark.parametrize("name", copied())
def test_copies_are_up_to_date(name: str) -> None:
    """A chart contains all its files, so manifests/ is copied, by `make golden`."""
    shipped = (MANIFESTS / name).read_text(encoding="utf-8")
    if os.environ.get("UPDATE_GOLDEN"):
        (COPIES / name).write_text(shipped, encoding="utf-8")
    copy = (COPIES / name).read_text(encoding="utf-8")
    assert copy == shipped, f"manifests/chart/files/{name} is stale: run `make golden`"


def test_every_copy_is_rendered() -> None:
    """Each is named in a template, by its whole path or by its name in base."""
    for name in copied():
        stem = name.removeprefix("base/").removesuffix(".yaml")
        assert f'{name}"' in TEMPLATES or f'"{stem}"' in TEMPLATES, name


def test_the_chart_is_this_version() -> None:
    """Chart and program are released together."""
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text(encoding="utf-8"))
    assert (chart["version"], chart["appVersion"]) == (__version__, __version__)


def described(schema: dict[str, Any], prefix: str = "") -> Iterator[tuple[str, str]]:
    """Yield path → description of each value that the schema describes."""
    for name, value in schema["properties"].items():
        if "description" in value:
            yield f"{prefix}{name}", value["description"]
        else:
            yield from described(value, f"{prefix}{name}.")


def commented() -> Iterator[tuple[str, str]]:
    """Yield path → comment of each value in values.yaml that has one above it."""
    outer, lines = "", list[str]()
    for line in VALUES_TEXT.partition("\n\n")[2].splitlines():
        comment = re.fullmatch(r" *# (.*)", line)
        key = re.match(r"(  )?([A-Za-z]+):", line)
        if comment:
            lines.append(comment[1])
            continue
        if key and not key[1]:
            outer = key[2]
        if key and lines:
            yield f"{outer}.{key[2]}" if key[1] else key[2], " ".join(lines)
        lines.clear()


def default_of(path: str) -> Any:
    """Return the default of a value; KeyError if values.yaml does not have it."""
    value: Any = VALUES
    for key in path.split("."):
        value = value[key]
    return value


DESCRIBED = dict(described(SCHEMA))


def test_comments_and_descriptions_are_the_same() -> None:
    """An editor shows the same text from the schema as values.yaml."""
    comments = dict(commented())
    assert comments.keys() == DESCRIBED.keys() - HELM
    for path, comment in comments.items():
        assert comment == DESCRIBED[path], path


def test_the_schema_is_strict() -> None:
    """No object accepts a key that nothing reads, except maps whose keys belong to others."""

    def check(schema: dict[str, Any], path: str) -> None:
        if "properties" in schema:
            assert schema["additionalProperties"] is False, path
        for name, value in schema.get("properties", {}).items():
            check(value, f"{path}.{name}")
        check(schema["items"], f"{path}[]") if "items" in schema else None

    check(SCHEMA, "")
    assert set(SCHEMA["properties"]) - HELM == set(VALUES)


def test_templates_read_each_value() -> None:
    """A value that no template reads would do nothing, and one without a default would fail."""
    read = set(re.findall(r"\.Values\.([A-Za-z.]*[A-Za-z])", TEMPLATES))
    image = {f"image.{name}" for name in re.findall(r"\.(repository|tag|digest)\b", TEMPLATES)}
    assert read - {"image"} | image == DESCRIBED.keys() - HELM


def test_defaults_fit_their_types() -> None:
    """The schema's types fit the defaults; Helm checks the rest."""
    types = {str: "string", bool: "boolean", int: "integer", list: "array", dict: "object"}
    for path in DESCRIBED.keys() - HELM:
        node = SCHEMA
        for key in path.split("."):
            node = node["properties"][key]
        default = default_of(path)
        assert default in node["enum"] if "enum" in node else types[type(default)] in node["type"]


def test_the_table_of_values_is_up_to_date() -> None:
    """docs/helm.md lists each value with its default and its description."""
    rows = ["| value | default | meaning |", "|---|---|---|"]
    for path, description in DESCRIBED.items():
        if path not in HELM:
            default = json.dumps(default_of(path), ensure_ascii=False)
            rows.append(f"| `{path}` | `{default}` | {description} |")
    assert_up_to_date(
        DOCS / "helm.md", "<!-- values: ", "<!-- end of values -->", "\n" + "\n".join(rows) + "\n\n"
    )
