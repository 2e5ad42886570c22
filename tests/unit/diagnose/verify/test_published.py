"""The minimums of clouds: second evidence, for one machine type and one kind of test."""

from __future__ import annotations

import pytest

from tests.generated_pages import DOCS, assert_up_to_date
from tests.unit.diagnose.tools.benchmarks.outputs import bandwidth, nccl_job, nccl_log, row
from webhook.diagnose.verify.evaluate import evaluate, read_benchmark_files
from webhook.diagnose.verify.published import MACHINES, PUBLISHED, PublishedMinimum
from webhook.diagnose.verify.results import BenchmarkResult, PortRate

H100 = "Standard_ND96isr_H100_v5"
GPU = "initializing CUDA\n"


def judged(text: str, machine: str, rate: float = 400) -> BenchmarkResult:
    """Grade a text of one run on a machine."""
    files = read_benchmark_files("a", text)
    (result,) = evaluate(files, PortRate(rate, "--rate"), machine=machine).results
    return result


@pytest.mark.parametrize("minimum", PUBLISHED, ids=lambda minimum: str(minimum.machine))
def test_each_minimum(minimum: PublishedMinimum) -> None:
    """The minimum passes, less is a warning with the source, though our own limit is lower."""
    for gbps, code in ((minimum.gbps, None), (minimum.gbps - 0.5, "BelowPublished")):
        if minimum.nodes:
            job = nccl_job(test=minimum.test, gbytes=f"{gbps / 8:.4f}")
            result = judged(job + nccl_log(8), minimum.machine, minimum.gbps / 8)
        else:
            start = GPU if minimum.cuda else ""
            result = judged(start + bandwidth(row(gbps)), minimum.machine, minimum.gbps * 1.01)
        assert result.finding.code == (code or ("OverRdma" if minimum.nodes else "AtRate"))
        assert result.finding.level == ("warning" if code else "ok")
        assert result.citation == minimum.source
        start = " Less than the " if code else " No less than the "
        assert start in result.finding.text
        assert result.finding.text.endswith(f" of the health check for {minimum.machine}.")


def test_the_amounts() -> None:
    """The amounts for perftest are in Gb/s, for nccl-tests in GB/s."""
    assert "the 380 Gb/s of" in judged(GPU + bandwidth(row(390)), H100).finding.text
    job = nccl_job(test="all_gather_perf", gbytes="390") + nccl_log(8)
    assert "the 250 GB/s of" in judged(job, "a3-ultragpu-8g").finding.text
    job = nccl_job(gbytes="390") + nccl_log(8)
    assert "Less than the 440 GB/s of" in judged(job, "BM.GPU.H100.8").finding.text


@pytest.mark.parametrize(
    ("text", "machine"),
    [
        (bandwidth(row(390)), H100),
        (GPU + bandwidth(row(390)), ""),
        (GPU + bandwidth(row(390)), "a3-ultragpu-8g"),
        (GPU + bandwidth(row(390), title="RDMA_Read BW Test"), H100),
        (GPU + bandwidth(row(750), title="RDMA_Write Bidirectional BW Test"), H100),
        (nccl_job(nodes=4, test="all_gather_perf", gbytes="390") + nccl_log(8), "a3-ultragpu-8g"),
        (nccl_job(gbytes="390") + nccl_log(8), "a3-ultragpu-8g"),
    ],
    ids=["memory", "machine", "cloud", "test", "directions", "nodes", "collective"],
)
def test_other_tests(text: str, machine: str) -> None:
    """A minimum is compared only with the same test on the same machine."""
    assert judged(text, machine).finding == judged(text, "").finding


def test_other_levels() -> None:
    """A run that fails for our own reasons keeps its code; a failure has no number."""
    slow = judged(GPU + bandwidth(row(100)), H100)
    assert (slow.finding.level, slow.finding.code) == ("error", "FarBelowRate")
    assert slow.finding.text.endswith(f"Less than the 380 Gb/s of the health check for {H100}.")
    assert "health check" not in judged("Couldn't allocate MR\n", H100).finding.text


def test_the_sources() -> None:
    """Each machine has one minimum, and its source is a file at a commit."""
    assert len(set(MACHINES)) == len(MACHINES)
    assert all(len(minimum.source.split("/")[6]) == 40 for minimum in PUBLISHED)


def test_the_table_of_the_page() -> None:
    """The page has all minimums, with links to their sources."""
    rows = [_row(minimum) for minimum in PUBLISHED]
    table = ["| `--machine` | test | minimum | source |", "|---|---|---|---|", *rows]
    text = "\n" + "\n".join(table) + "\n\n"
    assert_up_to_date(DOCS / "verify.md", "<!-- published -->", "<!-- end of published -->", text)


def _row(minimum: PublishedMinimum) -> str:
    memory = " of GPU memory" if minimum.cuda and not minimum.nodes else ""
    amount = f"{minimum.gbps / 8:g} GB/s" if minimum.nodes else f"{minimum.gbps:g} Gb/s"
    link = f"[{minimum.source.rpartition('/')[2]}]({minimum.source})"
    return f"| `{minimum.machine}` | `{minimum.test}`{memory} | {amount} | {link} |"
