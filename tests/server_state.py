"""Short ways to configure the state of a server, by the events of its sources."""

from __future__ import annotations

from collections.abc import Mapping

from webhook.config.load import FabricsText
from webhook.model.fabric import CompiledConfiguration
from webhook.model.facts import Facts
from webhook.model.nodes import Node
from webhook.serve.state import (
    ConfigurationApplied,
    NamespacesChanged,
    NodesChanged,
    PreparedConfiguration,
    State,
)

_NO_NODES: Mapping[str, Node] = {}
_NO_TEXT = FabricsText("")


def prepared(
    configuration: CompiledConfiguration,
    nodes: Mapping[str, Node] = _NO_NODES,
    fabrics_text: FabricsText = _NO_TEXT,
) -> PreparedConfiguration:
    """Prepare a configuration, by default without nodes and without its text."""
    return PreparedConfiguration.of(configuration, nodes, fabrics_text)


def learn(state: State, facts: Facts) -> None:
    """Deliver facts on namespaces and nodes, as a facts file does."""
    state.send(NamespacesChanged(facts))
    state.send(NodesChanged(facts.nodes, {}))


def use(
    state: State, configuration: CompiledConfiguration, fabrics_text: FabricsText = _NO_TEXT
) -> None:
    """Prepare a configuration with the latest nodes, and put it to use."""
    nodes = state.snapshot.facts.nodes
    state.send(ConfigurationApplied(PreparedConfiguration.of(configuration, nodes, fabrics_text)))


def configured(
    configuration: CompiledConfiguration,
    facts: Facts | None = None,
    fabrics_text: FabricsText = _NO_TEXT,
) -> State:
    """Make the state of a server that uses these fabrics and facts."""
    state = State()
    learn(state, facts or Facts())
    use(state, configuration, fabrics_text)
    return state
