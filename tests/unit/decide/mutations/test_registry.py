from __future__ import annotations

import ast
import re
from collections import Counter
from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest

import webhook
from webhook.decide.analysis import Mutation, RdmaAccess
from webhook.decide.mutations import MUTATIONS
from webhook.decide.reasons import DECISION_REASONS, DENIALS, REASONS_OUTSIDE_MUTATIONS
from webhook.model.decision import Reason

SOURCES = Path(webhook.__file__).parent
ids = [mutation.name for mutation in MUTATIONS]


def module_of(mutation: Mutation) -> ModuleType:
    """Return the module of a mutation, which has the mutation's name."""
    return import_module(f"webhook.decide.mutations.{mutation.name.replace('-', '_')}")


def test_the_order_is_that_of_the_documentation() -> None:
    """Each mutation sees the earlier changes; a new mutation may have any position."""
    documented = [
        *("ipc-lock", "rdma-resources", "claims", "networks", "memory-limit", "env"),
        *("config-files", "hcoll", "nvlink", "shared-memory", "placement"),
    ]
    assert [name for name in ids if name in documented] == documented


def test_each_requires_the_documented_access() -> None:
    """The documented accesses: any pod, one with a NIC that no fabric lists, one with a fabric."""
    documented = {
        **dict.fromkeys(["ipc-lock", "hcoll", "shared-memory", "nvlink"], RdmaAccess.NONE),
        "memory-limit": RdmaAccess.ANY_NIC,
        **dict.fromkeys(
            ["rdma-resources", "claims", "networks", "env", "config-files", "placement"],
            RdmaAccess.FABRIC,
        ),
    }
    required = {mutation.name: mutation.needs for mutation in MUTATIONS}
    assert required | documented == required


def test_two_act_on_launchers() -> None:
    """Only `env` and `hcoll` do: a launcher gets neither a resource nor a capability."""
    assert {mutation.name for mutation in MUTATIONS if mutation.on_launchers} >= {"env", "hcoll"}
    assert not any(
        mutation.on_launchers
        for mutation in MUTATIONS
        if mutation.name in ("ipc-lock", "placement")
    )


@pytest.mark.parametrize("mutation", MUTATIONS, ids=ids)
def test_its_reasons_are_its_modules(mutation: Mutation) -> None:
    """`reasons` lists exactly the reasons in the module's namespace, alone or in tuples."""
    single = {value for value in vars(module_of(mutation)).values() if isinstance(value, Reason)}
    listed = {
        reason
        for value in vars(module_of(mutation)).values()
        if isinstance(value, tuple)
        for reason in value
        if isinstance(reason, Reason)
    }
    assert set(mutation.reasons) == single | listed


@pytest.mark.parametrize(
    "reasons",
    [*(mutation.reasons for mutation in MUTATIONS), REASONS_OUTSIDE_MUTATIONS, DECISION_REASONS],
    ids=[*ids, "pipeline", "decision"],
)
def test_reason_codes_are_unique_words(reasons: tuple[Reason, ...]) -> None:
    """Codes are in CamelCase, and `when` is one sentence for the documentation."""
    codes = Counter(reason.code for reason in reasons)
    assert max(codes.values()) == 1
    assert all(re.fullmatch(r"(?:[A-Z][A-Za-z0-9]*)+", code) for code in codes)
    for reason in reasons:
        assert re.fullmatch(r"[^\n]*[^.\n ]\.", reason.meaning)


@pytest.mark.parametrize("mutation", MUTATIONS, ids=ids)
def test_its_own_reasons_are_not_the_pipelines(mutation: Mutation) -> None:
    """Both are listed under the mutation's name, where a code must have one meaning.

    The exception is NamespaceUnknown, which means the same in the request and in memory-limit.
    """
    reserved = {reason.code for reason in REASONS_OUTSIDE_MUTATIONS} - {"NamespaceUnknown"}
    assert reserved.isdisjoint(reason.code for reason in mutation.reasons)


@pytest.mark.parametrize("mutation", MUTATIONS, ids=ids)
def test_it_describes_itself(mutation: Mutation) -> None:
    """The name fits rdma.lab/skip, and the summary continues a sentence `<name> ...`."""
    assert re.fullmatch(r"[a-z]+(?:-[a-z]+)*", mutation.name)
    assert re.fullmatch(r"[a-z][^\n]*[^.\n]", mutation.summary)
    document = module_of(mutation).__doc__
    assert document is not None
    assert document.startswith(f"`{mutation.name}`: ")


def test_every_denial_is_declared() -> None:
    """docs/reasons.md lists every denial."""
    raised = {
        getattr(import_module(_module(path)), argument.id)
        for path in SOURCES.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "Denial"
        for argument in node.args[:1]
        if isinstance(argument, ast.Name)
    }
    assert raised
    assert raised <= set(DENIALS)


def _module(path: Path) -> str:
    parts = path.relative_to(SOURCES.parent).with_suffix("").parts
    return ".".join(part for part in parts if part != "__init__")
