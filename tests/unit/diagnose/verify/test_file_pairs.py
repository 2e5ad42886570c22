"""A matrix from files, for people who measured pairs of nodes by another launcher."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

from tests.growth import executed_lines
from tests.unit.cli.shell import Answer, Shell
from tests.unit.diagnose.tools.benchmarks.outputs import bandwidth, row
from tests.unit.diagnose.verify.test_shown_ports import TOOLS
from webhook.diagnose.verify.file_pairs import pair_outputs, report_on_pairs
from webhook.diagnose.verify.matrix_output import matrix_schema
from webhook.diagnose.verify.results import NodePair, PortRate
from webhook.text.web_page import html_words

RATE = PortRate(100, "--rate 100")


@pytest.mark.parametrize(
    ("name", "pair"),
    [
        ("gpu-01_gpu-02.txt", ("gpu-01", "gpu-02")),
        ("pairs/gpu-01_gpu-02", ("gpu-01", "gpu-02")),
        ("a.lab_b.lab.log", ("a.lab", "b.lab")),
        ("a_to_b.out", ("a", "b")),
        ("gpu-a-to-gpu-b.txt", ("gpu-a", "gpu-b")),
        ("gpu-01.txt", None),
        ("a_b_c.txt", None),
        ("-a_b.txt", None),
        ("<stdin>", None),
    ],
)
def test_names(name: str, pair: tuple[str, str] | None) -> None:
    """The names are like the ones by `verify run --logs`, or have a word between the nodes."""
    outputs = pair_outputs(name, "x\n")
    assert [tuple(output.pair) for output in outputs] == ([pair] if pair else [])


def test_lines() -> None:
    """A line above an output counts more than the name of the file, and keeps the line numbers."""
    text = f"job 7\n# a -> b\n{bandwidth(row(95))}  b → c  \n{bandwidth(row(50))}"
    outputs = pair_outputs("x_y.txt", text)
    assert [output.pair for output in outputs] == [NodePair("a", "b"), NodePair("b", "c")]
    report = report_on_pairs(outputs, RATE, "")
    findings = [result.finding for pair in report.pairs for result in pair.results]
    assert [finding.code for finding in findings] == ["AtRate", "FarBelowRate"]
    line = text.split("\n").index("                    RDMA_Write BW Test") + 1
    assert (findings[0].location.line, findings[0].location.nodes) == (line, ("a", "b"))
    assert findings[1].location.line == 26
    assert findings[0].location.file == "x_y.txt"
    assert (report.nodes, report.fabric, report.image) == (("a", "b", "c"), "", "")


def test_the_rate_of_a_port_has_its_line_in_the_file() -> None:
    """Other tools' output below the line of a pair is numbered like the file."""
    outputs = pair_outputs("x", f"a -> b\n\nb -> c\n{TOOLS}{bandwidth(row(190))}")
    (result,) = report_on_pairs(outputs, None, "").pairs[1].results
    assert result.computation.startswith("200 Gb/s (ibstat, line 11)")


def test_the_work_grows_with_the_number_of_pairs() -> None:
    """Each pair is read by itself, not with the lines above it."""

    def judge(count: int) -> int:
        text = "".join(f"n{n} -> n{n + 1}\n{bandwidth(row(95))}" for n in range(count))
        return executed_lines(lambda: report_on_pairs(pair_outputs("x", text), RATE, ""))

    judge(1)  # fills the caches
    assert judge(40) <= 2.1 * judge(20)


@pytest.mark.parametrize("line", ["0[0] -> 1[1]", "a->b", "a -> b -> c", "x: a -> b", "a_1 -> b"])
def test_other_lines(line: str) -> None:
    """NCCL's channels and other arrows are no pairs."""
    assert pair_outputs("x", line) == []


def test_peers_and_pairs_without_a_result() -> None:
    """A pair is compared with the others, and one without a result stays in the matrix."""
    numbers = {"a_b": 95.0, "b_c": 95.0, "c_a": 91.0, "a_d": 60.0}
    outputs = [
        output
        for name, gbps in numbers.items()
        for output in pair_outputs(f"{name}.txt", bandwidth(row(gbps)))
    ]
    outputs += pair_outputs("b_d.txt", "slurmstepd: error\n")
    outputs += pair_outputs("a_b.log", bandwidth(row(95)))
    report = report_on_pairs(outputs, RATE, "f")
    codes = [[result.finding.code for result in pair.results] for pair in report.pairs]
    assert codes == [["AtRate", "AtRate"], ["AtRate"], ["AtRate"], ["FarBelowRate"], ["NoResult"]]
    slow, missing = report.pairs[3].results[0], report.pairs[4].results[0]
    assert "the median of its peers" in slow.finding.text
    assert missing.finding.location.nodes == ("b", "d")
    assert missing.finding.text == "The output of this pair has no result."


class Judge(Shell):
    """The command `verify judge --matrix`."""

    def __call__(self, *words: str) -> Answer:
        """Run it in its own folder."""
        return super().__call__("verify", "judge", "--matrix", *words)


@pytest.fixture
def judge(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Judge:
    """Return the command in a folder with the outputs of three nodes."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.delenv("RDMA_WEBHOOK_CONFIG", raising=False)
    for name, gbps in {"a_b": 95, "a_c": 96, "b_c": 97}.items():
        (tmp_path / f"{name}.txt").write_text(bandwidth(row(gbps)), encoding="utf-8")
    (tmp_path / "slow_a.txt").write_text(bandwidth(row(50)), encoding="utf-8")
    (tmp_path / "other.txt").write_text(bandwidth(row(95)), encoding="utf-8")
    return Judge(tmp_path, capsys)


MATRIX = """\
files: 3 nodes, 3 pairs

Gb/s
from ↓ to →  a  b       c
a               ✔ 95.0  ✔ 96.0
b            ·          ✔ 97.0
c            ·  ·
expected: 99.37 Gb/s = --rate 100 × 0.994 payload share at MTU 4096

✔ 3 of 3 pairs passed, 95\N{EN DASH}97 Gb/s
✔ ok (AtRate): 3 ok
"""


def test_the_command(judge: Judge, tmp_path: Path) -> None:
    """It shows what `verify run` shows, as text, JSON and a page."""
    files = ("a_b.txt", "a_c.txt", "b_c.txt")
    page = tmp_path / "matrix.html"
    answer = judge("--rate", "100", *files, "--html", str(page))
    assert (answer.code, answer.out, answer.err) == (0, MATRIX, "")
    html = page.read_text(encoding="utf-8")
    assert html_words("rdma-webhook verify judge ") in html
    assert "<title>files: files</title>" in html
    assert "namespace" not in html
    form = json.loads(judge("--rate", "100", *files, "-o", "json").out)
    Draft202012Validator(json.loads(matrix_schema())).validate(form)
    assert (form["run"], form["fabric"], form["image"]) == ("files", "", "")
    assert judge("--rate", "100", *files, "-o", "junit").out.count("<testcase") == 3


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (["a_b.txt", "slow_a.txt", "--rate", "100"], 1, ""),
        (["a_b.txt"], 3, ""),
        (["a_b.txt", "--rate", "100", "--strict"], 0, ""),
        (["a_b.txt", "other.txt", "--rate", "100"], 2, "other.txt: has no pair of nodes; name it"),
        (["other.txt"], 2, "other.txt: has no pair of nodes; name it CLIENT_SERVER.txt, or write"),
        (["a_b.txt", "absent", "--rate", "100"], 2, "absent: no such file or directory"),
        (["a_b.txt", "--html", "."], 2, ". is a directory"),
    ],
)
def test_exit_codes(judge: Judge, words: list[str], code: int, message: str) -> None:
    """A file without a pair is an error; the other files are still shown."""
    answer = judge(*words)
    assert answer.code == code
    assert message in answer.err
    assert answer.err.count("\n") == bool(message)


def test_a_page_needs_a_matrix(judge: Judge) -> None:
    """Without --matrix, there is no page."""
    answer = super(Judge, judge).__call__("verify", "judge", "a_b.txt", "--html", "x.html")
    assert (answer.code, answer.out) == (2, "")
    assert "--html requires --matrix" in answer.err


def test_the_fabric_is_named(judge: Judge) -> None:
    """With a fabric, the title is that of a run."""
    Path("fabrics.yaml").write_text(FABRICS, encoding="utf-8")
    answer = judge("-c", "fabrics.yaml", "--fabric", "v100-ib", "a_b.txt")
    assert answer.out.startswith("files: 2 nodes, 1 pair of fabric v100-ib\n")
    assert "rateGbps 100 (fabric v100-ib)" in answer.out


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
    hcas: ["mlx5_4:1"]
"""
