"""Load a fabrics file: compile its fabrics, or report all of its errors."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from webhook.config.compile import compile_configuration
from webhook.config.custom_resource import JsonData, kind_errors, object_errors, type_errors
from webhook.config.files import LocatedData, parse_yaml
from webhook.config.findings import (
    CONFIGURATION_TOO_LARGE,
    INVALID_VALUE,
    MISSING_FIELD,
    NOT_A_CONFIGURATION,
    REJECTED_BY_API_SERVER,
    UNKNOWN_FIELD,
    InvalidConfiguration,
    Truncation,
    invalid_configuration,
    limit_findings,
)
from webhook.config.judgeable_specs import JudgeableSpecs, complete_specs, partial_specs
from webhook.config.messages import shortened, show_value, validation_message
from webhook.config.model import API_VERSION, KIND, FabricConfigurationSpec
from webhook.config.rules import RULES
from webhook.errors import DocumentError
from webhook.model.fabric import CompiledConfiguration
from webhook.model.finding import Code, Finding, Level, Location
from webhook.model.pod import Path, at, dotted
from webhook.text.yaml.documents import read_documents
from webhook.text.yaml.tree import TextLimits

#: etcd takes no object above 1.5 MiB; 35,000 values are about a thousand fabrics.
LIMITS = TextLimits(size=1 << 20, values=35_000, depth=100)
#: The maximum size of a spec in JSON. The object must fit into etcd's 1.5 MiB with its spec, copies
#: of the last two specs in its status, a row there for each fabric, and `managedFields`. Measured:
#: 1,800 small fabrics that two managers apply fit up to 197 KiB, 500 usual ones up to 294 KiB.
MAX_SPEC_BYTES = 160 << 10
#: A cluster has a few fabrics; a file with this many is still checked within a second.
MAX_FABRICS = 4_000
#: Longer sentences of findings are truncated.
_MAX_SENTENCE = 500
#: A fabrics file as text, with lines, or as an object of the API server, without.
_Document = LocatedData | JsonData


class _UnplacedFinding(NamedTuple):
    """A finding before its line is known; pydantic's errors become sentences only if shown."""

    level: Level
    path: Path
    code: Code
    message: str | ErrorDetails


class FabricsText(NamedTuple):
    """The source of fabrics, so that another process can read them, too."""

    text: str
    #: Whether it is an object in JSON, for `parse_object`; otherwise a file, for `parse_fabrics`.
    is_object: bool = False


class LoadedConfiguration(NamedTuple):
    """A usable file: its compiled fabrics, and the warnings about it."""

    compiled: CompiledConfiguration
    findings: tuple[Finding, ...]
    fabrics_text: FabricsText
    truncation: Truncation = Truncation()
    #: The name of the file in messages.
    name: str = ""


def parse_fabrics(text: str, name: str, *, for_kubectl_apply: bool = False) -> LoadedConfiguration:
    """Load fabrics from a text; messages give name and line.

    `for_kubectl_apply`: also warn of values with which `kubectl apply` would fail.
    """
    document = _only_document(text, name)
    sent = _kubectl_spec(text) if for_kubectl_apply else None
    return _load(document, FabricsText(text), name, sent)


def _kubectl_spec(text: str) -> object:
    """Return the spec that kubectl would send for a file; None if the file is not YAML 1.1."""
    try:
        (document,) = read_documents(text.encode())
    except (DocumentError, ValueError):
        return None
    return document.value.get("spec")


def parse_object(item: Mapping[str, object], name: str) -> LoadedConfiguration:
    """Load fabrics from an object as sent by the API server; messages give name and path.

    The API server's additions are not read: `status`, and all metadata except the name.
    """
    fields = {key: value for key, value in item.items() if key not in ("metadata", "status")}
    document = JsonData(
        {**fields, "metadata": {"name": at(item, ("metadata", "name"))}}, name, LIMITS
    )
    return _load(document, FabricsText(document.text, is_object=True), name)


def _load(
    document: _Document, fabrics_text: FabricsText, name: str, sent: object = None
) -> LoadedConfiguration:
    """Judge a document; `sent`: the `spec` that kubectl would send, None if it does not matter."""
    data = document.data
    assert isinstance(data, dict)
    wrong_kind = [*kind_errors(data)]
    unplaced = [
        _UnplacedFinding("error", *finding) for finding in wrong_kind or object_errors(data)
    ]
    spec = data.get("spec")
    if wrong_kind or not isinstance(spec, dict):
        raise InvalidConfiguration(name, *_sort_findings(document, name, unplaced))
    _refuse_too_large(spec, document, name)
    _refuse_too_many(spec, document, name)
    specs, spec_findings = _judge(spec)
    spec_findings += _type_warnings(sent, spec_findings)
    unplaced += [finding._replace(path=("spec", *finding.path)) for finding in spec_findings]
    findings, truncation = _sort_findings(document, name, unplaced)
    if any(finding.level == "error" for finding in findings):
        raise InvalidConfiguration(name, findings, truncation)
    return LoadedConfiguration(
        compile_configuration(specs.without_broken_fabrics.model),
        findings,
        fabrics_text,
        truncation,
        name,
    )


def _type_warnings(sent: object, findings: Iterable[_UnplacedFinding]) -> list[_UnplacedFinding]:
    """Warn of types that the API server would reject, except below the errors in `findings`."""
    wrong_paths = {finding.path for finding in findings if finding.level == "error"}
    return [
        _UnplacedFinding("warning", path, REJECTED_BY_API_SERVER, message)
        for path, message in type_errors(sent)
        if not any(path[:steps] in wrong_paths for steps in range(len(path) + 1))
    ]


def _refuse_too_large(spec: dict[str, object], document: _Document, name: str) -> None:
    """Refuse a spec that may not fit into its object together with copies of the last two."""
    size = len(json.dumps(spec, ensure_ascii=False, separators=(",", ":")).encode(errors="replace"))
    if size > MAX_SPEC_BYTES:
        line = document.line(("spec",))
        raise invalid_configuration(CONFIGURATION_TOO_LARGE, name, spec_too_large(size), line)


def spec_too_large(size: int) -> str:
    """Return the error for a spec of this many bytes."""
    return (
        f"the spec has {size:,} bytes as JSON; the maximum is {MAX_SPEC_BYTES:,}, since the object "
        "also stores the last two specs in its status. Remove fabrics and variables that the "
        "cluster does not need"
    )


def _refuse_too_many(spec: dict[str, object], document: _Document, name: str) -> None:
    """Refuse a file whose check would take longer than a second."""
    listed = spec.get("fabrics")
    if isinstance(listed, list) and len(listed) > MAX_FABRICS:
        message = f"there are {len(listed):,} fabrics; the maximum is {MAX_FABRICS:,}"
        raise invalid_configuration(
            CONFIGURATION_TOO_LARGE, name, message, document.line(("spec", "fabrics"))
        )


def _judge(spec: dict[str, object]) -> tuple[JudgeableSpecs, list[_UnplacedFinding]]:
    """Read the configuration and apply the rules; the paths begin below `spec`."""
    findings: list[_UnplacedFinding] = []
    try:
        specs = complete_specs(FabricConfigurationSpec.model_validate(spec))
    except ValidationError as error:
        errors = error.errors(include_url=False)
        findings += [
            _UnplacedFinding("error", details["loc"], _code(details), details) for details in errors
        ]
        specs = partial_specs(spec, errors)
    for rule in RULES:
        findings += [
            _UnplacedFinding(
                rule.level, path, rule.code._replace(remedy=remedy) if remedy else rule.code, text
            )
            for path, text, remedy in rule.check(specs.of(rule))
        ]
    return specs, findings


def _only_document(text: str, name: str) -> LocatedData:
    """Read the only document of a file; raise InvalidConfiguration if it is not a mapping."""
    documents = [
        document for document in parse_yaml(text, name, LIMITS) if document.data is not None
    ]
    if not documents:
        raise invalid_configuration(
            NOT_A_CONFIGURATION,
            name,
            f"the file is empty; a fabrics file begins with apiVersion: {API_VERSION} and "
            f"kind: {KIND}",
        )
    if len(documents) > 1:
        raise invalid_configuration(
            NOT_A_CONFIGURATION,
            name,
            "the file contains several documents; a fabrics file is one document",
            documents[1].first_line,
        )
    document = documents[0]
    if not isinstance(document.data, dict):
        raise invalid_configuration(
            NOT_A_CONFIGURATION,
            name,
            f"the file is {show_value(document.data)}, not a mapping",
            document.first_line,
        )
    return document


def _sort_findings(
    document: _Document, name: str, unplaced: Iterable[_UnplacedFinding]
) -> tuple[tuple[Finding, ...], Truncation]:
    """Return findings in the order of their lines; on one line, in the order of their paths."""
    placed = sorted(
        unplaced, key=lambda finding: (document.line(finding.path) or 0, _steps(finding.path))
    )
    chosen, truncation = limit_findings(placed)
    findings = (
        code.finding(
            level,
            shortened(_sentence(message), _MAX_SENTENCE),
            location=Location(file=name, line=document.line(path), path=_dotted(path)),
        )
        for level, path, code, message in chosen
    )
    return tuple(findings), truncation


def _code(error: ErrorDetails) -> Code:
    return {"extra_forbidden": UNKNOWN_FIELD, "missing": MISSING_FIELD}.get(
        error["type"], INVALID_VALUE
    )


def _sentence(message: str | ErrorDetails) -> str:
    return message if isinstance(message, str) else validation_message(message)


def _dotted(path: Path) -> str:
    """Format a path, with long keys truncated."""
    return dotted(tuple(step if isinstance(step, int) else shortened(step) for step in path))


def _steps(path: Path) -> list[str]:
    """Return the steps of a path in a form that sorts item 2 before item 10."""
    return [f"{step:08}" if isinstance(step, int) else step for step in path]
