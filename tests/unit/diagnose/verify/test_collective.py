"""Collectives: their bandwidth against that of the HCAs that NCCL used."""

from __future__ import annotations

import pytest

from tests.unit.diagnose.tools.benchmarks.outputs import nccl_job, nccl_log
from tests.unit.diagnose.verify.evaluated import evaluated, only_result
from webhook.diagnose.verify.output import verify_text
from webhook.diagnose.verify.results import BenchmarkResult


def judged(job: str, log: str, rate: float | None = 400) -> BenchmarkResult:
    """Grade a job with its log."""
    return only_result(job + log, rate=rate)


def code_of(result: BenchmarkResult) -> tuple[str, str]:
    """Return level and code."""
    return result.finding.level, result.finding.code


@pytest.mark.parametrize(
    ("test", "gpus", "nodes", "gigabytes"),
    [
        ("all_reduce", 8, 2, 400),
        ("all_gather", 8, 4, 400),
        ("reduce_scatter", 8, 2, 400),
        ("broadcast", 8, 2, 400),
        ("reduce", 8, 2, 400),
        ("alltoall", 8, 2, 93.75),
        ("alltoall", 8, 4, 64.58),
        ("sendrecv", 8, 2, 50),
        ("sendrecv", 4, 2, 100),
    ],
)
def test_the_expectation(test: str, gpus: int, nodes: int, gigabytes: float) -> None:
    """Eight HCAs of 400 Gb/s carry 400 GB/s; some tests use only a part of that.

    alltoall on two nodes: 400 / 8 x 15/8 = 93.75; on four: 50 x 31/24 = 64.58.
    """
    job = nccl_job(gpus, nodes, test=f"{test}_perf", gbytes=f"{gigabytes * 0.51:.2f}")
    result = judged(job, nccl_log(8))
    assert code_of(result) == ("ok", "OverRdma")
    assert result.expected == pytest.approx(gigabytes * 8, abs=0.1)
    slow = judged(job.replace(f"{gigabytes * 0.51:.2f}", f"{gigabytes * 0.49:.2f}"), nccl_log(8))
    assert code_of(slow) == ("error", "CollectiveSlow")
    assert slow.layer == "nccl"


@pytest.mark.parametrize(
    ("gigabytes", "level", "code"),
    [("100", "ok", "OverRdma"), ("100.1", "unsure", "CollectiveUngraded")],
)
def test_more_than_the_hcas_can_carry(gigabytes: str, level: str, code: str) -> None:
    """One HCA of 50 GB/s cannot carry twice that, with any algorithm."""
    result = judged(nccl_job(gbytes=gigabytes), nccl_log(1))
    assert code_of(result) == (level, code)
    reason = "the log shows only a part of the HCAs, or NVLink carried the data."
    assert result.finding.text.endswith(reason) == (level == "unsure")
    assert result.finding.remedy.startswith("Pass the complete log") == (level == "unsure")


def test_the_remedy_for_a_log_without_hcas() -> None:
    """The run has two nodes, large messages and a rate; only the log lacks something."""
    log = "n:1:1 [0] NCCL INFO Using network AWS Libfabric\n"
    result = judged(nccl_job(), f"{log}n:1:1 [0] NCCL INFO NET/OFI Selected Provider is efa\n")
    assert code_of(result) == ("unsure", "CollectiveUngraded")
    assert result.finding.text.endswith("since the log does not show which HCAs NCCL used.")
    assert result.finding.remedy.startswith("Pass the complete log of all ranks")
    assert "--rate" not in result.finding.remedy
    no_rate = judged(nccl_job(), nccl_log(8), rate=None)
    assert "--rate" in no_rate.finding.remedy


@pytest.mark.parametrize(
    ("gigabytes", "code", "end"),
    [
        ("240", "OverRdma", ", without wrong results before line 20, where the output is cut."),
        ("50", "CollectiveUngraded", "nothing, since the output is cut in line 20."),
    ],
)
def test_a_cut_table(gigabytes: str, code: str, end: str) -> None:
    """A row with larger messages may have been faster."""
    job, *_ = nccl_job(gbytes=gigabytes).partition("# Out of")
    job = job.replace("#wrong\n", "#wrong  time  algbw  busbw #wrong\n")
    result = judged(job, nccl_log(8))
    assert (result.finding.code, result.finding.text.endswith(end)) == (code, True)


@pytest.mark.parametrize(
    ("job", "rate", "end"),
    [
        (nccl_job(gbytes="3"), 200, " It is below the 25 GB/s of a single port."),
        (nccl_job(gbytes="24.99"), 200, " It is below the 25 GB/s of a single port."),
        (nccl_job(gbytes="25"), 200, ""),
        (nccl_job(gbytes="3"), None, ""),
        (nccl_job(gbytes="n/a"), 200, ""),
        (nccl_job(gbytes="3", size="67108864"), 200, ""),
        (nccl_job(gbytes="3", size="134217728"), 200, " It is below the 25 GB/s of a single port."),
        (nccl_job(gbytes="3", test="sendrecv_perf"), 200, ""),
        (nccl_job(1, gbytes="22.9"), 200, ""),
        (nccl_job(1, gbytes="12.5"), 200, ""),
        (
            nccl_job(1, gbytes="12.49"),
            200,
            " It is below half of the 25 GB/s of a single port.",
        ),
        (nccl_job(0, gbytes="22.9"), 200, " It is below the 25 GB/s of a single port."),
    ],
)
def test_less_than_one_port(job: str, rate: float | None, end: str) -> None:
    """Without a log, the network is unknown, but such a bandwidth is low on any network."""
    finding = judged(job, "", rate).finding
    assert (finding.level, finding.code) == ("unsure", "TransportUnknown")
    assert finding.text.endswith(f"; the output does not show which network was used.{end}")


def test_the_unit_is_gigabytes() -> None:
    """Peers and expectations are in GB/s, as nccl-tests prints them."""
    texts = [nccl_job(gbytes=gigabytes) + nccl_log(8) for gigabytes in ("390", "391", "300")]
    evaluation = evaluated(*texts, rate=400)
    assert evaluation.results[2].finding.text.endswith(
        "This is below the median of its peers, 390 GB/s (3 runs of this test)."
    )
    assert "expected: 400 GB/s = 8 HCAs × --rate 400 ÷ 8\n" in verify_text(evaluation)


def test_the_labels_of_srun() -> None:
    """Each rank logs its own channels, so a rank alone would show a single HCA."""
    log = nccl_log(8).splitlines()
    labeled = [f"{rank}: {line}" for rank, line in enumerate(log)]
    job = [f"0: {line}" for line in nccl_job(gbytes="390").splitlines()]
    result = only_result("\n".join([*labeled, *job]), rate=400)
    assert (result.finding.code, result.expected) == ("OverRdma", 3200)


def test_the_sentences() -> None:
    """They are in GB/s, as nccl-tests prints it, and name the share."""
    result = judged(nccl_job(gbytes="390.2"), nccl_log(8))
    assert result.finding.text == (
        "Bus bandwidth 390.2 GB/s over RDMA, 98% of the 400 GB/s that the HCAs can carry, without "
        "wrong results."
    )
    assert result.computation == "8 HCAs × --rate 400"
    share = judged(nccl_job(test="sendrecv_perf", gbytes="49"), nccl_log(8))
    assert share.computation == "8 HCAs × --rate 400 × 0.125 of a node for sendrecv_perf"


def test_one_hca_of_eight() -> None:
    """45 GB/s is all that one HCA carries, so it passes; the fabric's other HCAs are named."""
    job, log = nccl_job(gbytes="45"), nccl_log(8, used=1)
    assert code_of(judged(job, log)) == ("ok", "OverRdma")
    hcas = [f"mlx5_{number}" for number in range(8)]
    evaluation = evaluated(job + log, rate=400, hcas=hcas)
    assert (evaluation.worst.level, evaluation.worst.code) == ("warning", "HcasNotUsed")
    names = ", ".join(hcas[1:])
    assert evaluation.worst.text == f"NCCL did not use 7 HCAs of the fabric: {names}."
    assert evaluated(job + nccl_log(8), rate=50, hcas=hcas).findings == ()


def test_libfabric() -> None:
    """32 NICs of 100 Gb/s carry 400 GB/s; without the devices of its channels, nothing fails."""
    selected = "NCCL INFO NET/OFI Selected provider is efa, fabric is efa (found 32 nics)\n"
    devices = "".join(
        f"NET/Libfabric : GPU Direct RDMA Enabled for HCA {n} 'r'\n via NET/Libfabric/{n}/GDRDMA\n"
        for n in range(8)
    )
    for gigabytes, code in (("300", "OverRdma"), ("100", "CollectiveSlow")):
        result = judged(nccl_job(gbytes=gigabytes), selected + devices, 100)
        assert (result.finding.code, result.expected) == (code, 3200)
        assert result.computation == "32 HCAs × --rate 100"
    unlisted = judged(nccl_job(gbytes="100"), selected, 100)
    assert code_of(unlisted) == ("unsure", "CollectiveUngraded")
    assert "which HCAs NCCL used" in unlisted.finding.text


def test_an_old_plugin_for_libfabric() -> None:
    """32.84 GB/s over 4 NICs of 100 Gb/s (a README of AWS); the log names neither test nor NICs."""
    selected = "NCCL INFO NET/OFI Selected Provider is efa\n"
    channels = "".join(f"n [send] via NET/AWS Libfabric/{number}/GDRDMA\n" for number in range(4))
    table = nccl_job(gbytes="32.84", wrong="5e-07").partition("\n")[2]
    job = table.replace("46.65", "17.52").replace("#wrong", "error")
    result = judged(job, selected + channels, 100)
    assert code_of(result) == ("ok", "OverRdma")
    assert result.finding.text == (
        "Bus bandwidth 32.84 GB/s over RDMA, 66% of the 50 GB/s that the HCAs can carry, without "
        "wrong results."
    )


def test_libfabric_without_gpu_direct() -> None:
    """A T4 with one NIC of 100 Gb/s reaches 3.15 GB/s (a README of aws-ia)."""
    selected = "NCCL INFO NET/OFI Selected Provider is efa (found 1 nics)\n"
    channel = "Channel 00/0 : 0[0] -> 1[0] [send] via NET/AWS Libfabric/0\n"
    slow = judged(nccl_job(1, gbytes="3.15"), selected + channel, 100)
    assert code_of(slow) == ("error", "CollectiveSlow")
    assert slow.finding.text.endswith(
        "25% of the 12.5 GB/s that the HCAs can carry, without wrong results, and without "
        "GPUDirect RDMA."
    )
    fast = judged(nccl_job(1, gbytes="12.0"), selected + channel, 100)
    assert code_of(fast) == ("warning", "NoGpuDirect")


def test_the_labels_of_mpich() -> None:
    """A run with 15% of its HCAs never passes, whatever a launcher writes before each line."""
    text = nccl_job(8, 3, gbytes="29.50") + nccl_log(8)
    labeled = "".join(f"[0] {line}\n" for line in text.replace("-1  ", "-1[0]  ").splitlines())
    result = only_result(labeled, rate=200)
    assert code_of(result) == ("error", "CollectiveSlow")
    assert (result.gbps, result.expected) == (236, 1600)


def test_nodes_that_do_not_see_each_other() -> None:
    """Two runs of one node each have the bandwidth of NVLink, and say nothing about the network."""
    ranks = "".join(
        f"#  Rank  {rank} Group  0 Pid  7 on {host} device  0\n" for host in "ab" for rank in (0, 1)
    )
    job = nccl_job(0, gbytes="181.2").replace("maxBytes 1073741824\n", f"maxBytes 8\n{ranks}")
    result = judged(job, nccl_log(8))
    assert code_of(result) == ("unsure", "Loopback")
    assert result.finding.text == (
        "Bus bandwidth 181.2 GB/s within one node. Each node ran nccl-tests by itself, as it does "
        "if nccl-tests was built without MPI=1. No cable was tested."
    )
    assert result.finding.remedy.startswith("Build nccl-tests with MPI=1")


def test_a_command_that_turns_rdma_off() -> None:
    """Without a log the command decides; a log is better evidence."""
    job = f"mpirun -x NCCL_IB_DISABLE=1 {nccl_job(gbytes='1.17')}"
    result = judged(job, "")
    assert code_of(result) == ("error", "NotRdma")
    assert result.finding.text == (
        "Bus bandwidth 1.17 GB/s over TCP sockets, not over RDMA: the command sets "
        "NCCL_IB_DISABLE=1."
    )
    assert result.finding.remedy == "Remove NCCL_IB_DISABLE=1 from the command."
    assert code_of(judged(job.replace("1.17", "390"), nccl_log(8))) == ("ok", "OverRdma")
    assert code_of(judged(f"NCCL_NET=Socket {nccl_job(8, 1)}", "")) == ("unsure", "Loopback")


@pytest.mark.parametrize(
    ("log", "text", "remedy"),
    [
        (
            "NET/OFI Selected Provider is tcp;ofi_rxm\n",
            "NCCL's plugin for libfabric uses TCP, not RDMA.",
            "If FI_PROVIDER is set",
        ),
        (
            "via NET/Socket/0\nNCCL_IB_DISABLE set by environment to 1.\n",
            "NCCL_IB_DISABLE turns RDMA off in NCCL.",
            "Remove the variable",
        ),
    ],
)
def test_the_cause_of_tcp(log: str, text: str, remedy: str) -> None:
    """The log of a collective names the setting that turns RDMA off, or the provider."""
    finding = judged(nccl_job(gbytes="1.63"), log).finding
    assert (finding.level, finding.code) == ("error", "NotRdma")
    assert finding.text == f"Bus bandwidth 1.63 GB/s over TCP sockets, not over RDMA. {text}"
    assert finding.remedy.startswith(remedy)


def test_hosts_that_name_their_hcas_differently() -> None:
    """One HCA on each node carries the data, and none of the fabric's is left out."""
    log = "".join(
        f"n{number}:1:1 [0] NCCL INFO NET/IB : Using [0]mlx5_{number}:1/IB ; OOB eth0\n"
        f"n{number}:1:2 [0] NCCL INFO Ring 00 : 7 -> 8 [send] via NET/IB/0/GDRDMA\n"
        for number in (0, 1)
    )
    evaluation = evaluated(nccl_job(gbytes="11") + log, hcas=["mlx5_0", "mlx5_1"])
    assert (evaluation.results[0].expected, evaluation.findings) == (100, ())


def test_fewer_gpus_than_hcas() -> None:
    """A job with one GPU per node needs no more than one HCA, and no other has to be tested."""
    job = nccl_job(1, gbytes="45") + nccl_log(8, used=1)
    assert evaluated(job, rate=400, hcas=["mlx5_0", "mlx5_1"]).findings == ()
    assert evaluated(nccl_job() + "Using network IB", hcas=["mlx5_0"]).findings == ()


@pytest.mark.parametrize(
    ("job", "log", "reason"),
    [
        (nccl_job(size="67108864"), nccl_log(8), "its largest message has 64 MiB"),
        (nccl_job(), nccl_log(8, used=0) + nccl_log(1, used=0), "which HCAs NCCL used"),
        (nccl_job(), nccl_log(8) + "Channel 0 : 0 -> 1 via SHM/direct", "without NVLink"),
    ],
    ids=["small messages", "no channels", "no NVLink"],
)
def test_a_low_bandwidth_that_proves_nothing(job: str, log: str, reason: str) -> None:
    """The same bandwidth passes where it is high."""
    log += "NCCL INFO Using network IB\n"
    result = judged(job, log)
    assert code_of(result) == ("unsure", "CollectiveUngraded")
    assert "This proves nothing, since " in result.finding.text
    assert reason in result.finding.text
    assert code_of(judged(job, log, rate=40)) == ("ok", "OverRdma")


@pytest.mark.parametrize(
    ("job", "log", "rate", "reason"),
    [
        (nccl_job(), nccl_log(8), None, "the rate of the HCAs is unknown"),
        (nccl_job(gbytes="n/a"), nccl_log(8), 400, "no row has a bus bandwidth"),
        (nccl_job(), "NCCL INFO Using network IB", 400, "does not show which HCAs"),
        (nccl_job(test="gather_perf"), nccl_log(8), 400, "gather_perf has no known relation"),
        (nccl_job(0, test="alltoall_perf"), nccl_log(8), 400, "ranks and nodes are unknown"),
    ],
    ids=["rate", "bandwidth", "HCAs", "test", "ranks"],
)
def test_what_is_not_graded(job: str, log: str, rate: float | None, reason: str) -> None:
    """Without an expectation nothing passes."""
    result = judged(job, log, rate)
    assert code_of(result) == ("unsure", "CollectiveUngraded")
    assert reason in result.finding.text
    assert "It is not graded, since " in result.finding.text


def test_without_gpu_direct() -> None:
    """The bandwidth may suffice, but the nodes' memory is in the way."""
    result = judged(nccl_job(gbytes="390"), nccl_log(8, gpu_direct=False))
    assert code_of(result) == ("warning", "NoGpuDirect")


def test_unchecked_results() -> None:
    """With -c 0, the last line says 0 OK although nothing was checked."""
    text = judged(nccl_job(gbytes="390", wrong="N/A"), nccl_log(8)).finding.text
    assert text.endswith("can carry; nccl-tests did not check the results (-c 0).")
