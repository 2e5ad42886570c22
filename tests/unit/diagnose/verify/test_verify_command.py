"""The command: files, rates, exit codes and errors."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

from tests.unit.cli.shell import Answer, Shell
from tests.unit.diagnose.tools.benchmarks.outputs import bandwidth, row
from webhook.cli.parser import parse_words
from webhook.cli.verify import judge as command
from webhook.diagnose.verify.output import verify_schema

FABRICS = """\
apiVersion: rdma.lab/v1alpha1
kind: FabricConfiguration
spec:
  fabrics:
  - name: v100-ib
    match: {gpuResources: [nvidia.com/v100]}
    resources: [{name: rdma/rdma_v100}]
    linkLayer: InfiniBand
    rateGbps: 100
    hcas: ["mlx5_4:1", "mlx5_4:2"]
  - name: unknown-rate
    match: {gpuResources: [nvidia.com/a100]}
    resources: [{name: rdma/rdma_a100}]
    linkLayer: InfiniBand
    hcas: [mlx5_4, mlx5_5]
"""


class Judge(Shell):
    """The command `verify judge`, which runs in its own folder."""

    def __call__(self, *words: str) -> Answer:
        """Run it; a usage error of argparse is an answer as well."""
        return super().__call__("verify", *words)


@pytest.fixture
def judge(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Judge:
    """Return the command in a folder with a fabrics file and outputs."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.delenv("RDMA_WEBHOOK_CONFIG", raising=False)
    files = {
        "fabrics.yaml": FABRICS,
        "good": bandwidth(row(95)),
        "slow": bandwidth(row(80)),
        "bad": bandwidth(row(50)),
        "prose": "hello\nworld\n",
    }
    for name, content in files.items():
        (tmp_path / name).write_text(content, encoding="utf-8")
    return Judge(tmp_path, capsys)


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (["good", "--rate", "100"], 0),
        (["slow", "--rate", "100"], 0),
        (["slow", "--rate", "100", "--strict"], 1),
        (["good", "--rate", "100", "--strict"], 0),
        (["bad", "--rate", "100"], 1),
        (["good"], 3),
        (["good", "--strict"], 3),
        (["good", "bad", "--rate", "100"], 1),
        (["--rate", "100", "good", "-o", "json", "slow"], 0),
        (["good", "absent", "--rate", "100"], 2),
    ],
)
def test_exit_codes(judge: Judge, words: list[str], code: int) -> None:
    """0 ok or warning, 1 error, 2 unreadable, 3 unsure; with --strict, a warning is 1."""
    assert judge("judge", *words).code == code


def test_standard_input(judge: Judge, monkeypatch: pytest.MonkeyPatch) -> None:
    """`-` is standard input; a file named twice is read once."""
    stdin = io.TextIOWrapper(io.BytesIO(bandwidth(row(95)).encode()))
    monkeypatch.setattr(sys, "stdin", stdin)
    answer = judge("judge", "-", "-", "--rate", "100")
    assert (answer.code, answer.err) == (0, "")
    assert answer.out.startswith("ib_write_bw mlx5_4  <stdin>:2\n  ✔ 95.0 Gb/s")


def test_the_rate_of_a_fabric(judge: Judge) -> None:
    """The fabric has the rate and the HCAs; --rate overrides it."""
    answer = judge("judge", "-c", "fabrics.yaml", "--fabric", "v100-ib", "good")
    assert (answer.code, answer.err) == (0, "")
    assert "rateGbps 100 (fabric v100-ib)" in answer.out
    answer = judge("judge", "-c", "fabrics.yaml", "--fabric", "v100-ib", "good", "--rate", "96")
    assert "expected: 95.39 Gb/s = --rate 96 × " in answer.out


def test_a_fabric_without_a_rate(judge: Judge, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its HCAs count; the fabrics file may be named by the environment."""
    monkeypatch.setenv("RDMA_WEBHOOK_CONFIG", "fabrics.yaml")
    answer = judge("judge", "--fabric", "unknown-rate", "good", "-o", "json")
    form = json.loads(answer.out)
    Draft202012Validator(json.loads(verify_schema())).validate(form)
    assert [result["finding"]["code"] for result in form["results"]] == ["NoRate"]
    assert [finding["text"] for finding in form["findings"]] == [
        "1 HCA of the fabric has no result: mlx5_5."
    ]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            [],
            "missing command; use one of judge, run, nccl, clean (see rdma-webhook verify --help)",
        ),
        (
            ["juge"],
            "unknown command 'juge' (did you mean judge?) (see rdma-webhook verify --help)",
        ),
        (["judge"], "missing FILE; use - for standard input"),
        (
            ["judge", "good", "--rate", "fast"],
            "'fast' is not a rate in Gb/s up to 10,000, such as 200",
        ),
        (["judge", "good", "--rate", "0"], "'0' is not a rate in Gb/s"),
        (["judge", "good", "--rate", "nan"], "'nan' is not a rate in Gb/s"),
        (["judge", "good", "--rate", "10001"], "'10001' is not a rate in Gb/s"),
        (["judge", "good", "-c", "fabrics.yaml"], "-c FABRICS requires --fabric NAME"),
        (["judge", "good", "--fabric", "v100-ib"], "--fabric requires a fabrics file"),
        (
            ["judge", "good", "-c", "fabrics.yaml", "--fabric", "v100_ib"],
            "fabrics.yaml: no fabric 'v100_ib' (did you mean v100-ib?)",
        ),
        (
            ["judge", "good", "-c", "fabrics.yaml", "--fabric", "x"],
            "no fabric 'x'; the fabrics are v100-ib, unknown-rate\n",
        ),
        (["judge", "absent"], "absent: no such file or directory"),
        (["judge", "."], ".: is a directory; name a file in it"),
        (
            ["judge", "prose"],
            "prose: none of its 2 lines was recognized; pass the output of perftest",
        ),
    ],
)
def test_errors(judge: Judge, words: list[str], message: str) -> None:
    """A single line on standard error has the error and its correction."""
    answer = judge(*words)
    assert (answer.code, answer.out, answer.err.count("\n")) == (2, "", 1)
    assert message in answer.err


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("hello\n", "its only line was not recognized"),
        ("hello", "its only line was not recognized"),
        ("hello\n\nworld\n", "none of its 3 lines was recognized"),
        ("", "is empty"),
    ],
)
def test_lines_are_counted_as_an_editor_does(judge: Judge, text: str, problem: str) -> None:
    """The line break at the end begins no line."""
    Path("other").write_text(text, encoding="utf-8", newline="")
    answer = judge("judge", "other")
    assert f"other: {problem}; pass the output of " in answer.err


def test_an_unknown_output_of_several_nodes_is_one_file(judge: Judge) -> None:
    """Its lines are counted over all nodes, and its error is printed once."""
    Path("pdsh").write_text("n1: Disk BW Test\nn2: Disk BW Test\nn1: 5\nn2: 5\nn2: ok\n")
    answer = judge("judge", "pdsh")
    assert (answer.code, answer.out, answer.err.count("\n")) == (2, "", 1)
    assert "pdsh: none of its 5 lines was recognized; " in answer.err


def test_standard_input_may_stand_behind_options() -> None:
    """The order of words and options does not matter, and - is a word."""
    arguments = parse_words(["verify", "judge", "--rate", "100", "good", "-o", "json", "-"])
    assert arguments.files == ["good", "-"]


def test_a_file_that_is_too_large(judge: Judge, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is not read, and the other files are still graded."""
    monkeypatch.setattr(command, "_MAX_BYTES", 3000)
    Path("large").write_bytes(b"x" * 3001)
    answer = judge("judge", "large", "good", "--rate", "100")
    assert answer.code == 2
    assert "large: is larger than 0 MiB; pass only the benchmark's part of it" in answer.err
    assert "good:2" in answer.out


def test_bytes_that_are_no_text(judge: Judge) -> None:
    """They are replaced, and the other bytes are read."""
    Path("good").write_bytes(b"\xff\xfe\x00\n" + bandwidth(row(95)).encode())
    assert judge("judge", "good", "--rate", "100").code == 0


def test_invisible_characters(judge: Judge) -> None:
    """The content of a file cannot change the terminal."""
    Path("bad").write_text("Couldn't allocate MR \x1b]0;owned\x07\u202e\n", encoding="utf-8")
    for form in ("text", "json", "junit"):
        assert not {"\x1b", "\x07", "\u202e"} & set(judge("judge", "bad", "-o", form).out)
