"""The table of known lines, and the logs that it explains."""

from __future__ import annotations

import pytest

from webhook.diagnose.tools.known_lines import KNOWN_LINES, TRANSPORTS, KnownLine
from webhook.diagnose.tools.logs import LogReport, read_log
from webhook.diagnose.why.reasons import REASONS
from webhook.model.finding import Finding


def read(*lines: str) -> LogReport:
    """Read a log with these lines."""
    return read_log("\n".join(lines))


each_known_line = pytest.mark.parametrize(
    "known_line", KNOWN_LINES, ids=lambda known_line: str(known_line.code)
)


@each_known_line
def test_the_example_is_recognized(known_line: KnownLine) -> None:
    """The line of a row is of that kind, and of no other."""
    (matched,) = read(known_line.example).line_counts
    assert (matched.known_line, matched.line, matched.times) == (known_line, known_line.example, 1)


@each_known_line
def test_rows_are_whole(known_line: KnownLine) -> None:
    """Every failure has a remedy, and each text is a sentence that fits in a table cell."""
    texts = [known_line.meaning, known_line.remedy] if known_line.remedy else [known_line.meaning]
    assert known_line.remedy or known_line.rdma
    assert all(text.endswith(".") and not {"\n", "|"} & set(text) for text in texts)
    assert known_line.source
    assert known_line.clue in known_line.example


def test_codes_are_unique() -> None:
    """A code has one meaning, so a known line does not share one with a reason."""
    codes = [known_line.code for known_line in KNOWN_LINES]
    assert len(set(codes)) == len(codes)
    assert not {code.lower() for code in codes} & {code.lower() for code in REASONS}


@pytest.mark.parametrize(
    "line",
    [
        "NCCL INFO Channel 00/0 : 0[0] -> 1[1] via P2P/IPC",
        "NCCL INFO NCCL_IB_DISABLE set by environment to 0.",
        "NCCL INFO NCCL_NET set by environment to IB",
        "NCCL INFO NET/Socket : GPU Direct RDMA Disabled for HCA 0 'eth0'",
        "NCCL INFO Using network TCPX_thing",
        "[1.2] [n:1:0] ucp_worker.c:1855 UCX  INFO self cfg#0 tag(self/memory)",
        "python: Cannot allocate memory",
        "open: Bad address",
        "link eth0 state is Down",
        "file not found",
        "transport 'cuda_copy' is not available, please use one or more of: rc, tcp",
        "train.py: error: unrecognized arguments: --lr",
        "df: /dev/shm/nccl-3 is here",
        "Job Killed",
        "Killed by the user",
        "[1]+  Killed                  ib_write_bw -d mlx5_0",
        "",
    ],
)
def test_other_lines_tell_nothing(line: str) -> None:
    """A line that only looks similar is no known line."""
    assert read(line).line_counts == ()


@pytest.mark.parametrize(
    "line",
    [
        "Killed ",
        "[1,0]<stderr>:Killed",
        "[pod/server/perftest] Killed",
        "bash: line 1:  1491 Killed                  ib_write_bw -d mlx5_0",
        "./test.sh: 1491 Killed ib_write_bw",
        "mpirun noticed that process rank 0 with PID 0 on node n1 exited on signal 9 (Killed).",
    ],
)
def test_a_shell_says_that_a_process_was_killed(line: str) -> None:
    """The shells dash and busybox print only that word, bash and mpirun more."""
    assert [matched.known_line.code for matched in read(line).line_counts] == ["ProcessKilled"]


@pytest.mark.parametrize(
    ("status", "name"),
    [
        (1, None),
        (2, None),
        (4, "LocalProtection"),
        (5, "Flushed"),
        (8, None),
        (9, "InvalidRequest"),
        (10, "RemoteAccess"),
        (11, "RemoteOperation"),
        (12, "Unanswered"),
        (13, "ReceiverNotReady"),
        (20, None),
        (21, None),
    ],
)
def test_the_status_of_a_transfer_names_the_cause(status: int, name: str | None) -> None:
    """The numbers come from ibv_wc_status; any other has its number in the line."""
    perftest = [
        f" Failed status {status}: wr_id 0 syndrom 0x88",
        f" Failed status {status} (some error): wr_id 0 syndrom 0x88",
    ]
    nccl = [
        f"NCCL WARN NET/IB : Got completion from peer 10.2.0.5<33092> with {written} opcode 0"
        for written in (f"error {status},", f"status={status}", f"status=IBV_WC_X_ERR({status})")
    ]
    for lines, first_word, code in (
        (perftest, "Transfer", "TransferFailed"),
        (nccl, "Completion", "CompletionError"),
    ):
        for line in lines:
            (matched,) = read(line).line_counts
            assert matched.known_line.code == (f"{first_word}{name}" if name else code)
            assert matched.known_line.consequence == (status == 5)
            assert "ibv_wc_status" in matched.known_line.source
            assert not name or f"status {status}, " in matched.known_line.meaning


@pytest.mark.parametrize(
    ("network", "rdma"),
    [
        ("IB/0", True),
        ("IB/0/GDRDMA", True),
        ("IBext/1", True),
        ("IBext_v8/0/GDRDMA(PCI)", True),
        ("OFI/0", None),
        ("AWS Libfabric/0/GDRDMA", None),
        ("Libfabric/0", None),
        ("gIB/3/GDRDMA", True),
        ("Socket/0", False),
        ("FasTrak/0", None),
    ],
)
def test_networks_of_nccl(network: str, rdma: bool | None) -> None:
    """NET/IB and the plugins of HPC-X and Google are RDMA; NET/Socket is not.

    The plugin for libfabric may be either.
    """
    line = f"n:1:1 [0] NCCL INFO Channel 00/0 : 7[3] -> 0[0] [receive] via NET/{network}"
    transports = [matched.known_line.rdma for matched in read(line).line_counts]
    assert transports == ([] if rdma is None else [rdma])


@pytest.mark.parametrize(
    ("provider", "rdma_use"),
    [
        ("provider is efa, fabric is efa-direct (found 16 nics)", "yes"),
        ("Provider is efa", "yes"),
        ("Provider is cxi", "yes"),
        ("provider is verbs;ofi_rxm (found 1 nics)", "yes"),
        ("provider is tcp;ofi_rxm (found 1 nics)", "no"),
        ("provider is ofi_rxm;tcp", "no"),
        ("Provider is sockets", "no"),
        ("Provider is udp;ofi_rxd", "no"),
        ("Provider is net", "no"),
        ("provider is ", ""),
    ],
)
def test_providers_of_libfabric(provider: str, rdma_use: str) -> None:
    """The provider decides whether NCCL's plugin for libfabric uses RDMA, not its name."""
    name = "n:1:1 [0] NCCL INFO Using network AWS Libfabric"
    channel = "n:1:1 [0] NCCL INFO Channel 00/0 : 7[3] -> 0[0] [receive] via NET/AWS Libfabric/0"
    assert read(f"n:1:1 [0] NCCL INFO NET/OFI Selected {provider}", name, channel)[1] == rdma_use


_RDMA, _SOCKET, _CHOSE_RDMA, _CHOSE_SOCKET, _EFA, _OFI_TCP, _UCX, _UCX_TCP = (
    known_line.example for known_line in TRANSPORTS
)


@pytest.mark.parametrize(
    ("lines", "transport"),
    [
        ([_RDMA], "yes"),
        ([_SOCKET], "no"),
        ([_RDMA, _SOCKET], "mixed"),
        ([_CHOSE_RDMA], "yes"),
        ([_CHOSE_SOCKET], "no"),
        ([_CHOSE_SOCKET, _RDMA], "yes"),
        ([_CHOSE_RDMA, _SOCKET], "no"),
        ([_EFA, _SOCKET], "no"),
        ([_EFA, _CHOSE_SOCKET], "no"),
        ([_EFA, _UCX_TCP], "yes"),
        ([_OFI_TCP, _UCX], "no"),
        ([_EFA, _OFI_TCP], "mixed"),
        ([_UCX], "yes"),
        ([_UCX_TCP], "no"),
        ([_UCX_TCP, _CHOSE_RDMA], "yes"),
        (["NCCL INFO Channel 00/0 : 0[0] -> 1[1] via P2P/IPC"], ""),
        ([], ""),
    ],
    ids=str,
)
def test_channels_say_more_than_choices(lines: list[str], transport: str) -> None:
    """Actual channels decide, else the network that NCCL chose, else libfabric, else UCX."""
    assert read(*lines).rdma_use == transport


def test_gpu_direct() -> None:
    """GDRDMA in a channel over RDMA means that the NIC reads the GPU's memory."""
    plain = _RDMA.replace("/GDRDMA", "")
    assert read(plain, _RDMA).gpu_direct is True
    assert read(plain).gpu_direct is False
    assert read(_SOCKET).gpu_direct is None


@pytest.mark.parametrize("network", ["IBext_v8", "gIB", "Libfabric", "AWS Libfabric"])
def test_gpu_direct_of_plugins(network: str) -> None:
    """NCCL writes GDRDMA for plugins, too, if they can read a GPU's memory."""
    channel = f"NCCL INFO Channel 00/0 : 0[0] -> 1[0] [send] via NET/{network}/0"
    assert read(channel).gpu_direct is False
    assert read(channel, f"{channel}/GDRDMA/Shared").gpu_direct is True


def test_channels_within_a_node() -> None:
    """They use no network, whichever network NCCL chose."""
    local = "NCCL INFO Channel 38/0 : 5[7000] -> 3[5000] via {} comm 0x7f37 nRanks 08"
    assert read(_CHOSE_RDMA, local.format("P2P/IPC")).within_a_node is True
    assert read(_CHOSE_RDMA, local.format("SHM/direct/direct")).within_a_node is True
    assert read(_CHOSE_RDMA, local.format("P2P/IPC"), _RDMA).within_a_node is False
    assert read(_CHOSE_RDMA).within_a_node is False


def test_the_completions_of_old_versions() -> None:
    """They do not name the other end (NVIDIA/nccl-tests, issue 24)."""
    line = "n:1:2 [0] transport/net_ib.cu:788 NCCL WARN NET/IB : Got completion with error {}, x"
    for status, code in ((4, "LocalProtection"), (12, "Unanswered"), (2, "Error")):
        (count,) = read(line.format(status)).line_counts
        assert count.known_line.code == f"Completion{code}"


def test_nccl_tests_that_fail() -> None:
    """The end of nccl-tests is a consequence: any other failure comes first."""
    codes = {row.code: row for row in KNOWN_LINES}
    assert codes["NcclTestFailed"].consequence is True
    assert codes["UcxPluginFailed"].consequence is False


def test_what_nccl_was_asked_to_tell() -> None:
    """With NCCL_DEBUG=WARN, NCCL names its version but no network."""
    assert read("NCCL version 2.27.5+cuda12.9")[2:4] == (True, False)
    assert read("n:1:1 [0] NCCL WARN x")[2:4] == (True, False)
    assert read(_CHOSE_RDMA)[2:4] == (True, True)
    assert read("hello")[2:4] == (False, False)


def test_lines_are_counted() -> None:
    """The report has the first line of a kind, and the number of such lines."""
    other = _SOCKET.replace("00/0", "01/0")
    (matched,) = read(f"  {_SOCKET}  ", other, other).line_counts
    assert (matched.line, matched.times) == (_SOCKET, 3)


def test_long_lines_are_cut() -> None:
    """Only the start of a line is read, so that no line takes long."""
    assert read("x" * 5000 + _SOCKET).line_counts == ()


def test_refused_memory_is_reported_once() -> None:
    """UCX appends its advice to the error of the kernel: that is one known line."""
    line = (
        "ib_iface.c:1060 UCX  ERROR ibv_create_cq(cqe=4096) failed: Cannot allocate memory : "
        "Please set max locked memory (ulimit -l) to 'unlimited' (current: 64 kbytes)"
    )
    assert [matched.known_line.code for matched in read(line).line_counts] == ["MemlockTooSmall"]


def test_lines_that_overwrite_each_other() -> None:
    """A progress bar ends its lines with a carriage return."""
    (matched,) = read_log("10%\r20%\r" + _SOCKET + "\r30%").line_counts
    assert matched.line == _SOCKET


def test_a_cause_makes_findings_with_its_remedy() -> None:
    """Without a remedy of its own, a finding has the row's; "" is a remedy of its own."""
    known_line = next(known_line for known_line in KNOWN_LINES if known_line.remedy)
    finding = known_line.finding("error", "It failed.")
    assert finding == Finding("error", known_line.code, "It failed.", known_line.remedy)
    assert not known_line.finding("error", "It failed.", "").remedy
