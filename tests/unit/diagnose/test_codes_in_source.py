"""The source has one record for findings, and no code outside of the registry."""

from __future__ import annotations

import ast
import importlib
import pkgutil
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from types import ModuleType

import webhook
from webhook.config.rules import Rule
from webhook.diagnose.codes import CODE_NAMES
from webhook.diagnose.tools.known_lines import KnownLine
from webhook.model.decision import Reason
from webhook.model.finding import Code

SOURCE = Path(webhook.__file__).parent
#: Words for the text of a case, as opposed to the meaning of a code in general.
_TEXTS = {"text", "message", "sentence", "because", "explanation"}
#: Classes whose instances have a code as the first argument.
_CODED = {"Code", "Reason", "KnownLine"}


@cache
def nodes() -> tuple[ast.Call | ast.ClassDef, ...]:
    """Return the calls and the classes of the source."""
    trees = (ast.parse(path.read_text(encoding="utf-8")) for path in sorted(SOURCE.rglob("*.py")))
    return tuple(
        node
        for tree in trees
        for node in ast.walk(tree)
        if isinstance(node, ast.Call | ast.ClassDef)
    )


def records() -> dict[str, set[str]]:
    """Return the fields of each NamedTuple and each dataclass."""
    return {
        node.name: {
            field.target.id
            for field in node.body
            if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name)
        }
        for node in nodes()
        if isinstance(node, ast.ClassDef) and _is_record(node)
    }


def _is_record(node: ast.ClassDef) -> bool:
    bases = {ast.unparse(base) for base in node.bases}
    decorators = {ast.unparse(decorator).partition("(")[0] for decorator in node.decorator_list}
    return "NamedTuple" in bases or "dataclass" in decorators


def test_one_record_has_code_text_and_remedy() -> None:
    """A tool reports findings; other records have a code and a remedy in general, but no text."""
    coded = {name: fields for name, fields in records().items() if {"code", "remedy"} <= fields}
    assert set(coded) == {"Finding", *_CODED}
    assert [name for name, fields in coded.items() if fields & _TEXTS] == ["Finding"]


def calls(*names: str) -> Iterator[ast.Call]:
    """Yield the calls of functions or classes with these names."""
    for node in nodes():
        if isinstance(node, ast.Call) and ast.unparse(node.func) in names:
            yield node


def _literal(call: ast.Call, position: int) -> str | None:
    """Return the code of a call, at a position or by its name; None if it is not a literal."""
    arguments = [keyword.value for keyword in call.keywords if keyword.arg == "code"]
    arguments += call.args[position : position + 1]
    (argument,) = arguments[:1]
    return str(argument.value) if isinstance(argument, ast.Constant) else None


def test_every_literal_code_is_registered() -> None:
    """Also a code in a function, which does not exist until the function runs."""
    codes = {_literal(call, 0) for call in calls(*_CODED)} - {None}
    assert len(codes) > 200
    assert codes <= set(CODE_NAMES)


def test_no_finding_has_a_literal_code() -> None:
    """A finding gets its code from a constant, whose meaning and remedy are documented."""
    codes = [_literal(call, 1) for call in calls("Finding")]
    assert codes
    assert not [code for code in codes if code is not None]


def modules() -> Iterator[ModuleType]:
    """Import all modules of the source but the registry."""
    for module in pkgutil.walk_packages(webhook.__path__, "webhook."):
        if not module.name.endswith(("__main__", "diagnose.codes")):
            yield importlib.import_module(module.name)


def _codes_in(value: object) -> Iterator[str]:
    """Yield the codes in a value of a module, and in the collections that it consists of."""
    if isinstance(value, Code | Reason | KnownLine):
        yield value.code
    elif isinstance(value, Rule):
        yield value.code.code
    elif isinstance(value, tuple | list | set | frozenset):
        for item in value:
            yield from _codes_in(item)
    elif isinstance(value, dict):
        yield from _codes_in([*value.keys(), *value.values()])


def test_every_code_of_a_module_is_registered() -> None:
    """Also a code that is computed, such as that of a rule; and the registry has no others."""
    codes = {code for module in modules() for code in _codes_in(list(vars(module).values()))}
    assert codes == set(CODE_NAMES)
