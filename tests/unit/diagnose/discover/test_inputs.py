"""The inputs of `discover`, by node."""

from __future__ import annotations

import pytest

from webhook.diagnose.discover.inputs import NodeText, read_texts
from webhook.diagnose.discover.site import SourcedObservation
from webhook.diagnose.tools.observations import Origin, PortObservation


def test_partly_understood_lines_are_evidence() -> None:
    """A line with an unknown state still shows a port, so the input is not a problem."""
    inputs = read_texts([NodeText("a.txt", "a", "mlx5_0 port 1 ==> ib0 (Weird)\n")])
    port = PortObservation(Origin("ibdev2netdev", 1), device="mlx5_0", port=1, netdevs=("ib0",))
    assert inputs.nodes == {"a": [SourcedObservation("a.txt", port)]}
    assert inputs.problems == ()


@pytest.mark.parametrize("prompts", [("a$", "b$"), ("dgx$", "node$"), ("gpu-1$", "gpu-2$")])
def test_a_prompt_names_the_node(prompts: tuple[str, str]) -> None:
    """Also a short one: nothing else keeps two machines of one text apart.

    The last prompt, without a command, adds nothing.
    """
    line = "mlx5_0 port 1 ==> ib0 (Up)"
    text = "".join(f"{prompt} ibdev2netdev\n{line}\n" for prompt in prompts) + f"{prompts[0]} "
    inputs = read_texts([NodeText("a.txt", "file", text)])
    assert list(inputs.nodes) == [prompt.removesuffix("$") for prompt in prompts]
    assert (inputs.problems, inputs.unread) == ((), ())
    alone = read_texts([NodeText("a.txt", "file", f"{prompts[0]} \n{line}\n")])
    assert list(alone.nodes) == [prompts[0].removesuffix("$")]
    assert alone.unread == ()


def test_lines_before_a_prompt_are_of_the_only_node() -> None:
    """A prompt of another machine counts only if a known tool ran there."""
    line = "mlx5_0 port 1 ==> ib0 (Up)"
    text = f"{line}\na$ ibdev2netdev\n{line}\nb$ df\nFilesystem\n"
    inputs = read_texts([NodeText("a.txt", "file", text)])
    assert list(inputs.nodes) == ["a"]
    assert [(unread.node, unread.number) for unread in inputs.unread] == [("b", 5)]
