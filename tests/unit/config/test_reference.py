"""docs/configuration.md always matches the models and the rules."""

from __future__ import annotations

import inspect
import re
from typing import Any

import pytest

from tests.generated_pages import DOCS, assert_up_to_date
from webhook.config.load import parse_fabrics
from webhook.config.messages import known_fields
from webhook.config.rules import RULES
from webhook.config.schema import json_schema

PAGE = DOCS / "configuration.md"


def shape(field: dict[str, Any]) -> str:
    """Write a field's type for readers of the page."""
    if "$ref" in field:
        return "mapping"
    if "enum" in field or "const" in field:
        return " \\| ".join(f"`{word}`" for word in field.get("enum", [field.get("const")]))
    if "anyOf" in field:
        return " \\| ".join(shape(part) for part in field["anyOf"] if part.get("type") != "null")
    if isinstance(field["type"], list):
        return "string \\| list" if "array" in field["type"] else "string"
    if field["type"] == "array":
        return "list of mappings" if "$ref" in field["items"] else "list"
    bounds = [str(field[key]) for key in ("minimum", "maximum") if key in field]
    names = {"object": "mapping", "integer": "number", "boolean": "`true` \\| `false`"}
    return " ".join([names.get(field["type"], field["type"]), " to ".join(bounds)]).strip()


def field_table() -> str:
    """Write the table of all fields from the schema."""
    schema = json_schema()
    models = {"": schema["$defs"]["FabricConfigurationSpec"]}
    lines = ["| field | type | default | meaning |", "|---|---|---|---|"]
    for known_field in known_fields():
        part = models[known_field.path.removesuffix(known_field.name).removesuffix(".")]
        field = part["properties"][known_field.name]
        reference = field.get("$ref") or field.get("items", {}).get("$ref")
        if reference:
            suffix = "[]" if "items" in field else ""
            models[known_field.path + suffix] = schema["$defs"][reference.rpartition("/")[2]]
        cells = (
            f"`{known_field.path}`",
            shape(field),
            default(part, known_field.name),
            field["description"],
        )
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def default(part: dict[str, Any], name: str) -> str:
    """Write a field's default; nothing if the field has none, or an empty one."""
    if name in part.get("required", []):
        return "required"
    value = part["properties"][name].get("default")
    if value in (None, [], {}) or isinstance(value, dict):
        return ""
    listed = ", ".join(value) if isinstance(value, list) else str(value).replace("T", "t")
    return f"`[{listed}]`" if isinstance(value, list) else f"`{listed}`"


def rule_table() -> str:
    """Write the table of all rules from their docstrings."""
    lines = ["| code | level | rule | why |", "|---|---|---|---|"]
    for rule in RULES:
        first, _, details = (inspect.getdoc(rule.check) or "").partition("\n\n")
        reason = re.sub(
            r"^An? (error|warning): (.)", lambda match: match[2].upper(), " ".join(details.split())
        )
        lines.append(f"| `{rule.code.code}` | {rule.level} | {first} | {reason} |")
    return "\n".join(lines)


@pytest.mark.parametrize(("name", "table"), [("fields", field_table), ("rules", rule_table)])
def test_the_tables_are_up_to_date(name: str, table: Any) -> None:
    """The page describes every field and every rule as the code does."""
    assert_up_to_date(PAGE, f"<!-- {name}: ", f"<!-- end of {name} -->", f"{table()}\n")


def test_the_pages_example_works() -> None:
    """The first YAML on the page is a fabrics file without findings."""
    page = PAGE.read_text(encoding="utf-8")
    example = page.partition("```yaml\n")[2].partition("```")[0]
    assert parse_fabrics(example, "f.yaml").findings == ()
    broken = example.replace("rdma_v100", "rdma-v100")
    with pytest.raises(Exception, match="rdma/rdma-v100") as caught:
        parse_fabrics(broken, "fabrics.yaml")
    place, _, message = str(caught.value).partition(": ")
    assert f"{place}: error: {message}" in page  # in check-config's format


def test_the_pages_links_lead_somewhere() -> None:
    """Every relative link on the page leads to a file or a folder."""
    targets = re.findall(r"\]\(([^)#:]+)\)", PAGE.read_text(encoding="utf-8"))
    assert [target for target in targets if not (DOCS / target).exists()] == []
    assert len(targets) >= 6
