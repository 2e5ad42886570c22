from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from textwrap import wrap

import pytest

from tests.builders import READY, V100, fabrics
from tests.server_state import configured, prepared
from webhook.errors import RequestError
from webhook.model.fabric_findings import CODES
from webhook.model.facts import Facts
from webhook.preview.fabrics.record import FABRICS_FORMATS
from webhook.serve.http import preview
from webhook.serve.http.preview import FabricAmounts
from webhook.serve.state import ConfigurationApplied, PreparedConfiguration, State

#: As docs/codes.md has it.
REMEDY = next(code.remedy for code in CODES if code.code == "ResourceNotOffered")


def facts(*names: str) -> Facts:
    """Return facts with nodes of the fabric v100-ib."""
    labels = {"nvidia.com/gpu.product": "Tesla-V100-SXM2"}
    status = {"allocatable": {"nvidia.com/v100": "8"}, "conditions": READY}
    return Facts.from_objects(
        {"kind": "Node", "metadata": {"name": name, "labels": labels}, "status": status}
        for name in names
    )


def state_of(*names: str) -> State:
    """Return the state of a server that has read these nodes."""
    return configured(fabrics(V100), facts(*names))


def test_amounts_and_no_names() -> None:
    """The answer has the amounts of a fabric, but not its nodes."""
    amounts = FabricAmounts(state_of("secret-1", "secret-2"))
    assert json.loads(asyncio.run(amounts.output("json"))) == {
        "fabrics": [
            {
                "name": "v100-ib",
                "nodes": 2,
                "unavailableNodes": 0,
                "gpus": {"nvidia.com/v100": 16},
                "resources": {"rdma/v100": 0},
                "findings": [
                    {
                        "level": "error",
                        "code": "ResourceNotOffered",
                        "text": "no node offers rdma/v100",
                        "remedy": REMEDY,
                        "location": {},
                    }
                ],
            }
        ]
    }


def test_the_table_is_that_of_the_command_without_names() -> None:
    """It is for people; `wide` adds nothing, since it would add the names."""
    amounts = FabricAmounts(state_of("secret-1", "secret-2"))
    assert asyncio.run(amounts.output("text")).decode().splitlines() == [
        "fabric   nodes  GPUs                 RDMA resources",
        "v100-ib  2      nvidia.com/v100: 16  rdma/v100: 0",
        "  ✘ v100-ib: no node offers rdma/v100 [ResourceNotOffered]",
        *wrap(REMEDY, 100, initial_indent="    → ", subsequent_indent="      "),
    ]
    assert asyncio.run(amounts.output("wide")) == asyncio.run(amounts.output("text"))


@pytest.mark.parametrize("form", [output.name for output in FABRICS_FORMATS])
def test_no_format_names_a_node(form: str) -> None:
    """Callers are anonymous. The nodes belong to a fabric, lack its resource, and fit no fabric."""
    stray = {"kind": "Node", "metadata": {"name": "secret-9"}}
    status = {"allocatable": {"nvidia.com/v100": "8"}}
    nodes = facts("secret-1").with_objects([{**stray, "status": status}], "")
    state = configured(fabrics(V100), nodes)
    assert b"secret" not in asyncio.run(FabricAmounts(state).output(form))


def test_it_is_computed_once_for_each_inventory(monkeypatch: pytest.MonkeyPatch) -> None:
    """Many clients may ask at once; new nodes are a new inventory."""
    computed: list[PreparedConfiguration] = []
    compute = preview._outputs

    def counted(current: PreparedConfiguration) -> dict[str, bytes]:
        computed.append(current)
        return compute(current)

    monkeypatch.setattr(preview, "_outputs", counted)
    state = state_of("a")

    async def ask() -> list[bytes]:
        amounts = FabricAmounts(state)
        forms = ("json", "text") * 10
        first = await asyncio.gather(*(amounts.output(form) for form in forms))
        state.send(ConfigurationApplied(prepared(fabrics(V100), facts("a", "b").nodes)))
        return [*first, await amounts.output("json")]

    *first, last = asyncio.run(ask())
    assert len(computed) == 2
    assert len(set(first)) == 2
    assert json.loads(last)["fabrics"][0]["nodes"] == 2


@pytest.mark.parametrize("form", [output.name for output in FABRICS_FORMATS])
def test_a_missing_configuration_is_an_error(form: str) -> None:
    """Without a usable configuration, there are no fabrics to list."""
    with pytest.raises(RequestError) as raised:
        asyncio.run(FabricAmounts(State()).output(form))
    assert raised.value.status == 503
    sentence = "the webhook has no usable configuration; see /readyz on its health port"
    assert str(raised.value) == sentence


def test_missing_nodes_are_an_error_for_programs() -> None:
    """Without nodes, each fabric would seem to have none."""
    with pytest.raises(RequestError) as raised:
        asyncio.run(FabricAmounts(state_of()).output("json"))
    assert raised.value.status == 503
    assert str(raised.value) == "the webhook has read no nodes"


@pytest.mark.parametrize("form", ["text", "wide"])
def test_without_nodes_people_see_the_fabrics(form: str) -> None:
    """The configuration has the resources of each fabric; only the amounts are unknown."""
    assert asyncio.run(FabricAmounts(state_of()).output(form)).decode().splitlines() == [
        "fabric   nodes    GPUs             RDMA resources",
        "v100-ib  unknown  nvidia.com/v100  rdma/v100",
        "The nodes are unknown: this server has read none.",
    ]


def test_a_fabric_without_resources_is_listed() -> None:
    """A fabric that labels or claims identify has neither GPU nor RDMA resources."""
    bare = fabrics(replace(V100, gpu_resources=frozenset(), resources=()))
    text = asyncio.run(FabricAmounts(configured(bare, Facts())).output("text")).decode()
    assert text.splitlines()[1].split() == ["v100-ib", "unknown", "none", "none"]
