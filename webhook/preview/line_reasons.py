"""The reasons of changed lines: the outcomes whose operations wrote a line of a document.

Operations have paths in the pod that a controller creates, and lines have paths in a document. Both
become named paths, where an item of a list has its name instead of a number: `spec`,
`containers`, `[trainer]`, `env`, `[NCCL_IB_HCA]`. A list whose items have no names ends a path.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import NamedTuple

from webhook.model.decision import PatchOp
from webhook.model.pod import Path, PodManifest, pointer_steps
from webhook.preview.report.record import Preview
from webhook.text.yaml.documents import DOCUMENT_LIMITS
from webhook.text.yaml.tree import LineIndex, UnreadableTextError, YamlNode, roots_of

NamedPath = tuple[str, ...]
_NAME = "name"


class LineReason(NamedTuple):
    """An outcome that changed a line."""

    decision: int  #: the number of its decision in the report
    mutation: str
    container: str  #: the container's name; "" for the pod
    code: str  #: of the reason


class PathReasons(NamedTuple):
    """The reasons of the changes of a template's pods, by named path."""

    #: By the paths that the operations write.
    written: Mapping[NamedPath, Sequence[LineReason]]
    #: By the paths above those.
    above: Mapping[NamedPath, Sequence[LineReason]]

    def of(self, path: NamedPath) -> Sequence[LineReason]:
        """Return the reasons of the longest written path that contains this one, or is in it."""
        for length in range(len(path), 0, -1):
            if path[:length] in self.written:
                return self.written[path[:length]]
        return self.above.get(path, ())


def path_reasons(previews: Iterable[tuple[int, Preview]]) -> PathReasons:
    """Return the reasons of all changes of the pods; each preview has its number in the report."""
    written: dict[NamedPath, list[LineReason]] = {}
    above: dict[NamedPath, list[LineReason]] = {}
    for number, preview in previews:
        for outcome in preview.decision.outcomes:
            reason = LineReason(number, outcome.mutation, outcome.container, outcome.reason.code)
            for op in outcome.ops:
                path = _written_path(op, preview.decision.pod)
                written.setdefault(path, []).append(reason)
                for length in range(1, len(path)):
                    above.setdefault(path[:length], []).append(reason)
    return PathReasons(written, above)


def _written_path(op: PatchOp, pod: PodManifest) -> NamedPath:
    named: list[str] = []
    node: object = pod
    steps = pointer_steps(op["path"])
    for position, step in enumerate(steps):
        if not isinstance(node, list):
            named.append(step)
            node = node.get(step) if isinstance(node, dict) else None
            continue
        is_last = position == len(steps) - 1
        node = op.get("value") if is_last else node[int(step)]
        name = node.get(_NAME) if isinstance(node, dict) else None
        if not isinstance(name, str):
            break
        named.append(f"[{name}]")
    return tuple(named)


class TemplateReasons(NamedTuple):
    """The reasons of a template's changes, and the template's place in its input."""

    document: int  #: its position in the input, empty documents included
    path: Path  #: in the document
    #: The place of the document's part in a pod: () for a pod or template, ("spec",) for a spec.
    base: NamedPath
    reasons: PathReasons


class Line(NamedTuple):
    """A line of a template."""

    paths: set[NamedPath]  #: in the pod, of the line's keys and scalars
    reasons: dict[LineReason, None]  #: each once, in the order of the text


def located_lines(
    text: str, templates: Sequence[TemplateReasons], numbers: AbstractSet[int | None]
) -> dict[int | None, Line]:
    """Return these lines of an input by number, which counts from 0.

    A line outside the templates is missing, and all are if the text is not YAML, such as JSON with
    escapes of its own.
    """
    try:
        roots = [root.node for root in roots_of(text, DOCUMENT_LIMITS)]
    except UnreadableTextError:
        return {}
    line_index = LineIndex(text)
    lines: dict[int | None, Line] = {}
    for template in templates:
        root = _node_at(roots[template.document], template.path)
        for part in _parts(root, template.base, text) if root is not None else ():
            first, last = line_index.line(part.start) - 1, line_index.line(part.end) - 1
            for number in numbers & {*range(first, last + 1)}:
                line = lines.setdefault(number, Line(set(), {}))
                line.paths.add(part.path)
                line.reasons.update(dict.fromkeys(template.reasons.of(part.path)))
    return lines


class _Part(NamedTuple):
    """A key or a scalar of a document: its offsets in the text, and its path in the pod."""

    start: int
    end: int
    path: NamedPath


def _parts(root: YamlNode, base: NamedPath, text: str) -> Iterator[_Part]:
    """Yield the keys and scalars of a template; those behind an alias are elsewhere."""
    stack = [(root, base)]
    while stack:
        node, path = stack.pop()
        if node.kind == "mapping":
            for key, value in node.pairs:
                stack.append((value, (*path, key.text)))
                yield _Part(key.start, key.end, stack[-1][1])
        elif node.kind == "sequence":
            stack += [(item, _item_path(path, item)) for item in node.children]
        elif node.kind == "scalar":
            yield _Part(node.start, node.content_end(text), path)


def _item_path(path: NamedPath, item: YamlNode) -> NamedPath:
    name = _child(item, _NAME)
    return (*path, f"[{name.text}]") if name is not None and name.kind == "scalar" else path


def _node_at(root: YamlNode, path: Path) -> YamlNode | None:
    node: YamlNode | None = root
    for step in path:
        node = _child(node, step) if node is not None else None
    return node


def _child(node: YamlNode, step: int | str) -> YamlNode | None:
    if isinstance(step, int):
        is_item = node.kind == "sequence" and step < len(node.children)
        return node.children[step] if is_item else None
    pairs = node.pairs if node.kind == "mapping" else ()
    return next((value for key, value in pairs if key.text == step), None)
