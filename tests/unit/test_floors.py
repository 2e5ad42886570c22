"""Each import contract of pyproject.toml reports an import that it forbids."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from copy import deepcopy
from itertools import pairwise
from pathlib import Path
from typing import Any

import grimp
import pytest
from importlinter.application.use_cases import read_user_options
from importlinter.configuration import configure
from importlinter.contracts.forbidden import ForbiddenContract
from importlinter.contracts.independence import IndependenceContract
from importlinter.contracts.layers import LayersContract
from importlinter.contracts.protected import ProtectedContract

_ROOT = Path(__file__).parents[2]
configure()
_OPTIONS = read_user_options(str(_ROOT / "pyproject.toml"))
CONTRACTS: list[dict[str, Any]] = _OPTIONS.contracts_options
_TYPES: dict[str, Any] = {
    "forbidden": ForbiddenContract,
    "independence": IndependenceContract,
    "layers": LayersContract,
    "protected": ProtectedContract,
}
Import = tuple[str, str]


@pytest.fixture(scope="module")
def graph() -> grimp.ImportGraph:
    """Return the graph of today's imports."""
    return grimp.build_graph("webhook", "certs", include_external_packages=True, cache_dir=None)


def holds(contract: dict[str, Any], graph: grimp.ImportGraph) -> bool:
    """Return whether the imports keep a contract."""
    options = {key: value for key, value in contract.items() if key not in ("name", "type")}
    checker = _TYPES[contract["type"]](contract["name"], _OPTIONS.session_options, options)
    return bool(checker.check(graph=graph, verbose=False).kept)


def modules_of(layer: str, container: str) -> list[str]:
    """List the modules of a layer by their full names."""
    return [f"{container}.{module.strip()}" for module in layer.split("|")]


def violations(contract: dict[str, Any], graph: grimp.ImportGraph) -> Iterator[Import]:
    """Yield imports that a contract forbids."""
    if contract["type"] == "layers":
        for container in contract["containers"]:
            layers = [modules_of(layer, container) for layer in contract["layers"]]
            for higher, lower in pairwise(layers):
                yield lower[0], higher[0]
            yield from ((layer[0], layer[1]) for layer in layers if len(layer) > 1)
    elif contract["type"] == "independence":
        siblings = sorted(graph.find_children(contract["modules"][0].removesuffix(".*")))
        yield from pairwise(siblings)
    elif contract["type"] == "protected":
        allowed = tuple(contract["allowed_importers"])
        outside = (module for module in sorted(graph.modules) if module.startswith("webhook."))
        importer = next(module for module in outside if not module.startswith(allowed))
        yield from ((importer, module) for module in contract["protected_modules"])
    else:
        yield from (
            (contract["source_modules"][0], module) for module in contract["forbidden_modules"]
        )


@pytest.mark.parametrize("contract", CONTRACTS, ids=lambda contract: str(contract["name"]))
def test_a_forbidden_import_is_caught(contract: dict[str, Any], graph: grimp.ImportGraph) -> None:
    """A planted import between layers, between siblings or of a forbidden module is reported."""
    assert holds(contract, deepcopy(graph))
    planted = list(violations(contract, graph))
    assert planted
    for importer, imported in planted:
        spoilt = deepcopy(graph)
        with suppress(ValueError):
            spoilt.add_module(imported, is_squashed=True)
        spoilt.add_import(importer=importer, imported=imported)
        assert not holds(contract, spoilt), (importer, imported)
