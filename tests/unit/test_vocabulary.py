"""Names have content, and docstrings are plain English: the limits may only sink."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

_ROOT = Path(__file__).parents[2]
_FOLDERS = {"source": ("webhook", "certs"), "tests": ("tests",)}
#: Words that stand for anything. A name of several words is not counted: `first_seen` has content.
_EMPTY = frozenset(
    {"again", "apart", "around", "asked", "best", "both", "come", "each", "few", "found", "gone"}
    | {"good", "held", "kept", "known", "lasting", "least", "left", "made", "many", "more", "most"}
    | {"nothing", "one", "others", "own", "rest", "said", "same", "seen", "shown", "some", "taken"}
    | {"thing", "told", "wanted", "way", "ways", "what", "where", "which", "who", "whole", "whose"}
    | {"why", "worst", "wrong"}
)
#: The share of names that may be empty words: `best` and `worst` of a comparison are right.
_SHARE = 0.003
#: Words that are never the best name.
_BANNED = ("found", "one", "said", "told")
#: Phrases that read as translated.
_STILTED = re.compile(
    r"\b(of which|by which|in which|that which|stands? (?:behind|beside|apart)|as one types"
    r"|for ever|so many of|whoever|says? (?:of|that|so)|tells?\b|known of|beside\b"
    r"|what (?:is|was) (?:said|known|given|wanted)"
    r"|as (?:it|they) (?:is|are|was|were) (?:sent|said))\b",
    re.IGNORECASE,
)
#: British spellings: messages, codes and names are American, as in Kubernetes.
_BRITISH = re.compile(
    r"colour|neighbour|behaviour|honour|favour|labelled|labelling|misspelt|learnt|dialled"
    r"|signalling|organis|utilis|recognis|normalis|parametris",
    re.IGNORECASE,
)
_Definition = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef


@cache
def _nodes(part: str) -> tuple[ast.AST, ...]:
    files = [file for folder in _FOLDERS[part] for file in (_ROOT / folder).rglob("*.py")]
    trees = (ast.parse(file.read_text(encoding="utf-8")) for file in files)
    return tuple(node for tree in trees for node in ast.walk(tree))


def _bound_names(part: str) -> Iterator[str]:
    """Yield the names of variables, parameters, functions and classes."""
    for node in _nodes(part):
        match node:
            case ast.Name(id=name, ctx=ast.Store()):
                yield name
            case ast.arg(arg=name):
                yield name
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                yield node.name
            case _:
                pass


@pytest.mark.parametrize("part", _FOLDERS)
def test_few_names_are_empty_words(part: str) -> None:
    """`one`, `found`, `said` and `told` are never names."""
    names = Counter(name.strip("_").lower() for name in _bound_names(part))
    empty = Counter({word: names[word] for word in _EMPTY})
    assert empty.total() <= _SHARE * names.total(), empty.most_common(10)
    assert not [word for word in _BANNED if names[word]]


@pytest.mark.parametrize("part", _FOLDERS)
def test_docstrings_are_plain_english(part: str) -> None:
    """No docstring has a phrase that reads as translated."""
    documented = (node for node in _nodes(part) if isinstance(node, _Definition))
    docstrings = (ast.get_docstring(node) or "" for node in documented)
    assert not [docstring for docstring in docstrings if _STILTED.search(docstring)]


@pytest.mark.parametrize("part", _FOLDERS)
def test_spelling_is_american(part: str) -> None:
    """Names, messages and docstrings have one spelling, that of Kubernetes."""
    strings = (node.value for node in _nodes(part) if isinstance(node, ast.Constant))
    texts = (text for text in strings if isinstance(text, str) and _BRITISH.pattern != text)
    assert not [text for text in (*_bound_names(part), *texts) if _BRITISH.search(text)]
