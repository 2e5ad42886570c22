"""A name alone is read if the command, or its position in the text, identifies it."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from webhook.diagnose.discover.inputs import NodeText, read_texts
from webhook.diagnose.tools.readers import read
from webhook.diagnose.tools.transcripts import split_by_node
from webhook.diagnose.tools.transcripts.commands import lone_value_observations

FIXTURES = [path.read_text() for path in sorted(Path(__file__).parents[1].glob("fixtures/*.txt"))]
IBSTAT = "CA 'mlx5_0'\n\tCA type: MT4129\n\tPort 1:\n\t\tState: Active\n"


def values(text: str) -> list[tuple[str, str, str]]:
    """Return tool, property and value of each value that a command printed alone."""
    return [
        (shown.origin.tool, shown.name, shown.value)
        for at, part in enumerate(split_by_node(text))
        for shown in lone_value_observations(
            part, read(part.lines).recognized_lines, is_first=at == 0
        )
    ]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("$ hostname\ngpu01\n", ("hostname", "hostname", "gpu01")),
        ("$ hostname -f\n\ngpu-01.lab.example\n", ("hostname", "hostname", "gpu-01.lab.example")),
        ("# hostname\nGPU\n", ("hostname", "hostname", "GPU")),
        ("$ hostname; ibstat -l\ngpu01\nmlx5_0\n", ("hostname", "hostname", "gpu01")),
        ("$ uname -n && true\ngpu01\n", ("uname -n", "hostname", "gpu01")),
        ("$ cat  /etc/hostname\ngpu01\n", ("cat /etc/hostname", "hostname", "gpu01")),
        (
            "$ sudo dmidecode -s system-product-name\n# SMBIOS is newer\nDGXH100\n",
            ("dmidecode -s system-product-name", "product", "DGXH100"),
        ),
        (
            "$ dmidecode -s system-manufacturer\nDell Inc.\n",
            ("dmidecode -s system-manufacturer", "vendor", "Dell Inc."),
        ),
        (
            "$ dmidecode -s chassis-asset-tag\nOracleCloud.com\n",
            ("dmidecode -s chassis-asset-tag", "asset-tag", "OracleCloud.com"),
        ),
        (f"gpu-01\n\n{IBSTAT}", ("hostname", "hostname", "gpu-01")),
        (f"node1.lab.example\n{IBSTAT}", ("hostname", "hostname", "node1.lab.example")),
        (f"{IBSTAT}PowerEdge XE9680\n", ("dmidecode -s", "product", "PowerEdge XE9680")),
    ],
    ids=lambda value: value.split("\n")[0] if isinstance(value, str) else "",
)
def test_a_value_is_read(text: str, expected: tuple[str, str, str]) -> None:
    """By its command, or as the name of a node at the beginning, above a tool's output."""
    assert values(text) == [expected]


@pytest.mark.parametrize(
    "text",
    [
        "$ hostname\nbash: hostname: command not found\n",
        "$ hostname\n",
        "$ hostname\ngpu-01\ngpu-02\n",
        "$ hostname -I\n10.0.0.1\n",
        "$ echo hostname\ngpu-01\n",
        "$ dmidecode -s system-product-name\nTo be filled by O.E.M.\n",
        "$ dmidecode -s bios-version\n1.2\n",
        f"ibstat\n{IBSTAT}",
        f"Before\n{IBSTAT}",
        f"after-the-change\n{IBSTAT}",
        f"A100\n{IBSTAT}",
        f"DGXH100x\n{IBSTAT}",
        f"ibp24s0\n{IBSTAT}",
        f"ens1f0np0\n{IBSTAT}",
        f"gpu 01\n{IBSTAT}",
        f"gpu-01\nsomething\n{IBSTAT}",
        "gpu-01\n",
        f"{IBSTAT}gpu-01\n{IBSTAT}",
        f"root@gpu-02:~# ibstat\n{IBSTAT}root@gpu-02:~# echo\ngpu-01\n{IBSTAT}",
        f"5.15.0-134-generic\n{IBSTAT}",
        f"{'a1' * 200}\n{IBSTAT}",
    ],
    ids=lambda text: text[:30].replace("\n", " "),
)
def test_other_words_are_no_value(text: str) -> None:
    """An error, several names, a heading, a device, a command, a version: nothing is assumed."""
    assert values(text) == []


def test_a_host_name_names_the_node_of_the_whole_text() -> None:
    """A prompt without a name does not; with two names, the other parts have neither."""
    text = f"$ hostname\ngpu-01\n$ ibstat\n{IBSTAT}"
    assert list(read_texts([NodeText("a.txt", "a", text)]).nodes) == ["gpu-01"]
    twice = f"{text}$ hostname\ngpu-02\n"
    assert list(read_texts([NodeText("a.txt", "a", twice)]).nodes) == ["gpu-01", "a", "gpu-02"]


@settings(max_examples=60)
@given(data=st.data())
def test_a_cut_names_no_other_node(data: st.DataObject) -> None:
    """The first line of a cut output is not read as a name."""
    text = data.draw(st.sampled_from(FIXTURES))
    lines = text.splitlines(keepends=True)
    cut = "".join(lines[data.draw(st.integers(0, len(lines))) :])
    named = [set(read_texts([NodeText("a", "a", part)]).nodes) for part in (text, cut)]
    assert named[1] <= named[0] | {"a"}
