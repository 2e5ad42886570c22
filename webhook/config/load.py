"""Load a fabrics file: everything that is wrong with it at once, or the compiled fabrics."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path as File
from typing import Any, NamedTuple

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from webhook.config.compile import compile_fabrics
from webhook.config.findings import Finding, InvalidConfiguration, refused
from webhook.config.messages import explain, meant, shown
from webhook.config.model import API_VERSION, KIND, FabricConfiguration
from webhook.config.read import Document, Limits, decode, read_documents, read_file
from webhook.config.rules import RULES, Parts
from webhook.core.fabric import Fabrics
from webhook.core.path import Path, dotted

LIMITS = Limits()


class Loaded(NamedTuple):
    """A file that can be used: the compiled fabrics, and the warnings."""

    fabrics: Fabrics
    findings: tuple[Finding, ...]


def load_fabrics(path: File) -> Loaded:
    """Load a fabrics file; InvalidConfiguration lists every error in it."""
    return parse_fabrics(decode(read_file(path, LIMITS), str(path)), str(path))


def parse_fabrics(text: str, name: str) -> Loaded:
    """Load fabrics out of a text; `name` stands before the line in messages."""
    document = _only_document(text, name)
    errors: list[ErrorDetails] = []
    model = None
    try:
        model = FabricConfiguration.model_validate(document.data)
    except ValidationError as error:
        errors = error.errors(include_url=False)
    findings = [_finding(document, "error", error["loc"], explain(error)) for error in errors]
    findings += _broken_rules(document, _parts(document.data, errors))
    findings.sort(key=lambda found: found.line or 0)
    if model is None or any(found.severity == "error" for found in findings):
        raise InvalidConfiguration(name, findings)
    return Loaded(compile_fabrics(model), tuple(findings))


def _only_document(text: str, name: str) -> Document:
    """Read the one document of a file, if it is a fabrics file at all."""
    documents = [
        document for document in read_documents(text, name, LIMITS) if document.data is not None
    ]
    if not documents:
        raise refused(name, f"is empty: begin with apiVersion: {API_VERSION} and kind: {KIND}")
    if len(documents) > 1:
        raise refused(name, "holds several documents: one is read", documents[1].first_line)
    document = documents[0]
    if not isinstance(document.data, dict):
        raise refused(name, f"is {shown(document.data)}, not a mapping", document.first_line)
    problems = list(_foreign(document))
    if problems:
        raise InvalidConfiguration(name, problems)
    return document


def _foreign(document: Document) -> Iterator[Finding]:
    """Say what else the file is, so that nothing is said of its other fields."""
    for key, wanted in (("apiVersion", API_VERSION), ("kind", KIND)):
        found = document.data.get(key)
        if found == wanted:
            continue
        hint = meant(found, (wanted,))
        if found == "ConfigMap":
            hint = " (give the file that is inside the ConfigMap)"
        said = f"must be {wanted}, not {shown(found)}{hint}" if found else f"is missing: {wanted}"
        yield _finding(document, "error", (key,), said)


def _parts(data: dict[str, Any], errors: Iterable[ErrorDetails]) -> Parts:
    """Take out what pydantic refused, so that the rules can look at the rest."""
    broken = {error["loc"][: 2 if error["loc"][0] == "fabrics" else 1] for error in errors}
    listed = data.get("fabrics")
    fabrics = listed if isinstance(listed, list) and ("fabrics",) not in broken else []
    positions = [place for place in range(len(fabrics)) if ("fabrics", place) not in broken]
    sound = {key: value for key, value in data.items() if (key,) not in broken}
    names = [fabric.get("name") for fabric in fabrics if isinstance(fabric, dict)]
    return Parts(
        model=FabricConfiguration.model_validate(
            {**sound, "fabrics": [fabrics[place] for place in positions]}
        ),
        positions=tuple(positions),
        names=frozenset(str(name) for name in names),
    )


def _broken_rules(document: Document, parts: Parts) -> Iterator[Finding]:
    for rule in RULES:
        for path, message in rule.check(parts):
            yield _finding(document, rule.severity, path, message)


def _finding(document: Document, severity: Any, path: Path, message: str) -> Finding:
    return Finding(severity, dotted(path), document.line(path), message)
