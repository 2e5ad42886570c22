"""Named pod templates that other parts of an object refer to.

No pod is made from such a fragment alone: the part that refers to it adds containers or devices. So
a fragment without a device is no pod without RDMA.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from webhook.kube.records import text_of
from webhook.model.pod import Path, dotted, fields_or_empty
from webhook.preview.workloads.objects import values_along
from webhook.preview.workloads.templates import Template


def fragments_of(value: object, templates: Sequence[Template]) -> dict[Path, str]:
    """Return the templates that are fragments: path → a sentence.

    `templates`: those in the value whose containers request no device.
    """
    references = _template_references(value) if templates else ()
    return {
        template.path: _note(template)
        for template in templates
        if _name_of(template, value) in references
    }


def _template_references(value: object) -> frozenset[str]:
    """Return the names that fields like `podTemplate` or `templateRef` of a document refer to."""
    names: set[str] = set()
    stack = [value]
    while stack:
        node = stack.pop()
        if isinstance(node, dict):
            names.update(name for key, below in node.items() for name in _names(key, below))
            stack.extend(node.values())
        elif isinstance(node, list):
            stack.extend(node)
    return frozenset(names)


def _names(key: str, value: object) -> Iterator[str]:
    if "template" in key.lower():
        name = value if isinstance(value, str) else fields_or_empty(value).get("name")
        if isinstance(name, str) and name:
            yield name


def _name_of(template: Template, value: object) -> str:
    """Return the name of the list item that a template is, or is part of; "" for another one."""
    values = values_along(value, template.path)[1:]
    items = [
        node for node, step in zip(values, template.path, strict=True) if isinstance(step, int)
    ]
    return text_of(fields_or_empty(items[-1]).get("name")) if items else ""


def _note(template: Template) -> str:
    full_name = f"{template.namespace or ''}/{template.name}".lstrip("/")
    return (
        f"{template.kind} {full_name} ({dotted(template.path)}): no pod is made from this named "
        "template alone, so it has no verdict"
    )
