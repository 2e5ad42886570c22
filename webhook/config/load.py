"""Load a fabrics file: compile its fabrics, or report everything that is wrong with it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path as File
from typing import NamedTuple, TypeVar

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from webhook.config.compile import compile_fabrics
from webhook.config.custom_resource import JsonData, foreign, object_errors, type_errors
from webhook.config.files import LocatedData, decode, parse_yaml, read_file
from webhook.config.findings import (
    Finding,
    InvalidConfiguration,
    Severity,
    Truncation,
    invalid_configuration,
    limit_findings,
)
from webhook.config.messages import brief, intended_field, show_value, validation_message
from webhook.config.model import (
    API_VERSION,
    KIND,
    Entry,
    FabricConfigurationSpec,
    FabricEntry,
)
from webhook.config.rules import RULES, ParsedSpec, Rule
from webhook.errors import DocumentError
from webhook.model.fabric import Fabrics
from webhook.model.pod import Path, at, dotted
from webhook.text.yaml.documents import read_documents
from webhook.text.yaml.tree import TextLimits

#: etcd takes no object above 1.5 MiB; 35,000 values are about a thousand fabrics.
LIMITS = TextLimits(octets=1 << 20, nodes=35_000, depth=100)
#: A cluster has a few fabrics; a file with this many is still checked within a second.
MOST_FABRICS = 4_000
#: The longest sentence of a finding, in characters.
_LONGEST = 500
#: The most unknown fields that are compared with known ones before anything is shown.
_MOST_UNKNOWN = 100
_Entry = TypeVar("_Entry", bound=Entry)
#: A fabrics file as text, with lines, or as an object of the API server, without.
_Document = LocatedData | JsonData


class _Told(NamedTuple):
    """A finding before its line is known; pydantic's errors become sentences only if shown."""

    severity: Severity
    path: Path
    said: str | ErrorDetails


class FabricsText(NamedTuple):
    """What fabrics were read from, so that another process can read them, too."""

    text: str
    #: Whether it is an object in JSON, for `parse_object`; otherwise a file, for `parse_fabrics`.
    is_object: bool = False


class Loaded(NamedTuple):
    """A file that can be used: its compiled fabrics, and the warnings about it."""

    fabrics: Fabrics
    findings: tuple[Finding, ...]
    source: FabricsText
    more: Truncation = Truncation()
    #: What messages call the file.
    name: str = ""


class _Readings(NamedTuple):
    """The same file with more and more of it left out, for rules that need to be sure of more."""

    readable: ParsedSpec  #: without its wrong fields: for rules that check values one by one
    sound: ParsedSpec  #: and without fabrics with a wrong value: for errors that compare fields
    certain: (
        ParsedSpec  #: and without those whose unknown field probably is a known one: for warnings
    )

    def of(self, rule: Rule) -> ParsedSpec:
        """Return what a rule may judge without reporting what follows from another mistake."""
        if rule.alone:
            return self.readable
        return self.sound if rule.severity == "error" else self.certain


def load_fabrics(path: File) -> Loaded:
    """Load a fabrics file; raise InvalidConfiguration, with all errors, if it cannot be used."""
    return parse_fabrics(decode(read_file(path, LIMITS), str(path)), str(path))


def parse_fabrics(text: str, name: str, *, applied: bool = False) -> Loaded:
    """Load fabrics from a text; messages give name and line.

    `applied`: also warn of what the API server would reject if the text were applied.
    """
    document = _only_document(text, name)
    sent = _sent(text) if applied else None
    return _loaded(document, FabricsText(text), name, sent)


def _sent(text: str) -> object:
    """Return what kubectl would send of a file, None if it cannot be read as YAML 1.1."""
    try:
        (document,) = read_documents(text.encode())
    except (DocumentError, ValueError):
        return None
    return document.value.get("spec")


def parse_object(item: Mapping[str, object], name: str) -> Loaded:
    """Load fabrics from an object as the API server writes it; messages give name and path.

    What the API server adds to an object is not read: `status`, and all metadata but the name.
    """
    own = {key: value for key, value in item.items() if key not in ("metadata", "status")}
    document = JsonData({**own, "metadata": {"name": at(item, ("metadata", "name"))}}, name, LIMITS)
    return _loaded(document, FabricsText(document.text, is_object=True), name)


def _loaded(document: _Document, source: FabricsText, name: str, sent: object = None) -> Loaded:
    """Judge a document; `sent`: what kubectl would send of its `spec`, None if that is all one."""
    data = document.data
    assert isinstance(data, dict)
    other = [*foreign(data)]
    told = [_Told("error", *one) for one in other or object_errors(data)]
    spec = data.get("spec")
    if other or not isinstance(spec, dict):
        raise InvalidConfiguration(name, *_in_order(document, told))
    _refuse_too_many(spec, document, name)
    readings, found = _judged(spec)
    found += _types(sent, found)
    told += [one._replace(path=("spec", *one.path)) for one in found]
    findings, more = _in_order(document, told)
    if any(found.severity == "error" for found in findings):
        raise InvalidConfiguration(name, findings, more)
    return Loaded(compile_fabrics(readings.sound.model), findings, source, more, name)


def _types(sent: object, found: Iterable[_Told]) -> list[_Told]:
    """Warn of types that the API server would reject, where the file is not wrong anyway."""
    wrong = {one.path for one in found if one.severity == "error"}
    return [
        _Told("warning", path, message)
        for path, message in type_errors(sent)
        if not any(path[:steps] in wrong for steps in range(len(path) + 1))
    ]


def _refuse_too_many(spec: dict[str, object], document: _Document, name: str) -> None:
    """Refuse a file whose check would take longer than a second."""
    listed = spec.get("fabrics")
    if isinstance(listed, list) and len(listed) > MOST_FABRICS:
        what = f"has {len(listed):,} fabrics: the maximum is {MOST_FABRICS:,}"
        raise invalid_configuration(name, what, document.line(("spec", "fabrics")))


def _judged(spec: dict[str, object]) -> tuple[_Readings, list[_Told]]:
    """Read the configuration and apply the rules; the paths begin below `spec`."""
    told: list[_Told] = []
    try:
        whole = _whole(FabricConfigurationSpec.model_validate(spec))
        readings = _Readings(whole, whole, whole)
    except ValidationError as error:
        wrong = error.errors(include_url=False)
        told += [_Told("error", one["loc"], one) for one in wrong]
        readings = _readings(spec, wrong)
    for rule in RULES:
        problems = rule.check(readings.of(rule))
        told += [_Told(rule.severity, path, message) for path, message in problems]
    return readings, told


def _only_document(text: str, name: str) -> LocatedData:
    """Read the only document of a file; raise InvalidConfiguration if it is not a mapping."""
    documents = [
        document for document in parse_yaml(text, name, LIMITS) if document.data is not None
    ]
    if not documents:
        raise invalid_configuration(
            name, f"is empty: a fabrics file begins with apiVersion: {API_VERSION} and kind: {KIND}"
        )
    if len(documents) > 1:
        raise invalid_configuration(
            name,
            "contains several documents: a fabrics file is one document",
            documents[1].first_line,
        )
    document = documents[0]
    if not isinstance(document.data, dict):
        raise invalid_configuration(
            name, f"is {show_value(document.data)}, not a mapping", document.first_line
        )
    return document


def _whole(model: FabricConfigurationSpec) -> ParsedSpec:
    names = frozenset(fabric.name for fabric in model.fabrics)
    return ParsedSpec(model=model, positions=tuple(range(len(model.fabrics))), names=names)


def _readings(data: dict[str, object], wrong: list[ErrorDetails]) -> _Readings:
    """Read a file that has wrong or unknown fields."""
    listed = data.get("fabrics")
    fabrics = listed if isinstance(listed, list) else []
    head, _ = _read(FabricConfigurationSpec, {**data, "fabrics": []})
    assert head is not None
    readable, broken = {}, set()
    for place, raw in enumerate(fabrics):
        fabric, sound = _read(FabricEntry, raw)
        if fabric is not None:
            readable[place] = fabric
        if not sound:
            broken.add(place)
    names = (raw.get("name") for raw in fabrics if isinstance(raw, dict))
    parts = ParsedSpec(
        model=head.model_copy(update={"fabrics": list(readable.values())}),
        positions=tuple(readable),
        names=frozenset(str(name) for name in names if name is not None),
        default_unsure=any(_hides_default(one) for one in wrong[:_MOST_UNKNOWN]),
    )
    whole = parts.without(broken)
    return _Readings(parts, whole, whole.without(_unsure(wrong)))


def _unsure(wrong: list[ErrorDetails]) -> set[int]:
    """Return which fabrics have an unknown field that probably is a known one, misspelled.

    Such a field is absent for every rule, which would then blame this fabric or others for it.
    """
    unknown = [one["loc"] for one in wrong if one["type"] == "extra_forbidden"]
    few = len(unknown) <= _MOST_UNKNOWN
    return {
        place[1]
        for place in unknown
        if place[0] == "fabrics"
        and isinstance(place[1], int)
        and not (few and not intended_field(place))
    }


def _hides_default(error: ErrorDetails) -> bool:
    """Return whether an error may be the reason why no `defaults.fabric` is known."""
    place = error["loc"]
    if error["type"] == "extra_forbidden":
        place = (*place[:-1], intended_field(place))
    return place in (("defaults",), ("defaults", "fabric"), ("fabric",))


def _read(model: type[_Entry], raw: object) -> tuple[_Entry | None, bool]:
    """Read a mapping without its wrong fields; return None if even that is impossible.

    The second value says whether the mapping is sound: unknown fields do no harm, but a known
    field with a wrong value does.
    """
    sound = True
    while True:
        try:
            return model.model_validate(raw), sound
        except ValidationError as error:
            found = error.errors(include_url=False)
            sound = sound and all(one["type"] == "extra_forbidden" for one in found)
            wrong = {_field(one) for one in found}
            if () in wrong:
                return None, sound
            raw = _without(raw, wrong)


def _field(error: ErrorDetails) -> Path:
    """Return the field to leave out: for an item its list, for a missing field its parent."""
    place = error["loc"][: -1 if error["type"] == "missing" else None]
    while place and isinstance(place[-1], int):
        place = place[:-1]
    return place


def _without(node: object, wrong: set[Path]) -> object:
    """Copy mappings, and lists of mappings, without the fields at the `wrong` paths."""
    if not wrong:
        return node
    below = _by_first_step(wrong)
    nothing: set[Path] = set()
    if isinstance(node, list):
        return [_without(item, below.get(place, nothing)) for place, item in enumerate(node)]
    assert isinstance(node, dict)
    return {
        key: _without(value, deeper)
        for key, value in node.items()
        if () not in (deeper := below.get(key, nothing))
    }


def _by_first_step(paths: set[Path]) -> dict[str | int, set[Path]]:
    """Group paths by their first step, and remove that step."""
    below: dict[str | int, set[Path]] = {}
    for first, *rest in paths:
        below.setdefault(first, set()).add(tuple(rest))
    return below


def _in_order(document: _Document, told: Iterable[_Told]) -> tuple[tuple[Finding, ...], Truncation]:
    """Return findings in the order of their lines; on one line, in the order of their paths."""
    placed = sorted(told, key=lambda one: (document.line(one.path) or 0, _steps(one.path)))
    chosen, more = limit_findings(placed)
    found = (
        Finding(severity, _dotted(path), document.line(path), brief(_sentence(said), _LONGEST))
        for severity, path, said in chosen
    )
    return tuple(found), more


def _sentence(said: str | ErrorDetails) -> str:
    return said if isinstance(said, str) else validation_message(said)


def _dotted(path: Path) -> str:
    """Format a path, with long keys truncated."""
    return dotted(tuple(step if isinstance(step, int) else brief(step) for step in path))


def _steps(path: Path) -> list[str]:
    """Return the steps of a path in a form that sorts item 2 before item 10."""
    return [f"{step:08}" if isinstance(step, int) else step for step in path]
