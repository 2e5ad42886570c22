"""Outputs of benchmarks, written by hand in the formats of the programs."""

from __future__ import annotations

from webhook.diagnose.tools.benchmarks import read_output
from webhook.diagnose.tools.benchmarks.measurements import Measurement

DASHES = "-" * 87
BW_HEADER = " #bytes     #iterations    BW peak[{0}]    BW average[{0}]   MsgRate[Mpps]"
LAT_HEADER = (
    " #bytes #iterations    t_min[usec]    t_max[usec]  t_typical[usec]    t_avg[usec]    "
    "t_stdev[usec]   99% percentile[usec]   99.9% percentile[usec] "
)
FREQUENCY = (
    "Conflicting CPU frequency values detected: 1200.000000 != 2700.125000. "
    "CPU Frequency is not max."
)
#: 46.5 Gb/s and 46.4 Gb/s with messages of 64 KiB, in both units; 0.0885 Mpps.
ROW_GBITS = " 65536      5000             46.50              46.40              0.088501"
ROW_MIB = " 65536      5000             5543.23            5531.31            0.088501"


def only(output: str) -> Measurement:
    """Read the only run of an output."""
    (run,) = read_output(output).measurements
    return run


def head(
    title: str = "RDMA_Write BW Test",
    device: str = "mlx5_4",
    *,
    link: str = "IB",
    mtu: int = 4096,
    qps: int = 1,
) -> list[str]:
    """Return the header that a process of perftest prints before the addresses."""
    return [
        DASHES,
        f"                    {title}",
        f" Dual-port       : OFF\t\tDevice         : {device}",
        f" Number of qps   : {qps}\t\tTransport type : IB",
        " Connection type : RC\t\tUsing SRQ      : OFF",
        " PCIe relax order: ON",
        " ibv_wr* API     : ON",
        " TX depth        : 128",
        " CQ Moderation   : 1",
        f" Mtu             : {mtu}[B]",
        f" Link type       : {link}",
        " Max inline data : 0[B]",
        " rdma_cm QPs\t : OFF",
        " Data ex. method : Ethernet",
        DASHES,
    ]


def addresses(local: str = "0x1a", remote: str = "0x2b") -> list[str]:
    """Return the addresses of both ends on InfiniBand."""
    return [
        f" local address: LID {local} QPN 0x0113 PSN 0x1b2c3d RKey 0x1ffd VAddr 0x007f31c2a00000",
        f" remote address: LID {remote} QPN 0x0114 PSN 0x4d5e6f RKey 0x1ffe VAddr 0x007f0b4e600000",
        DASHES,
    ]


def gids(local: str = "10:20:00:01", remote: str = "10:20:00:02") -> list[str]:
    """Return the addresses of both ends on RoCE."""
    zeros = ":".join(["00"] * 10)
    return [
        " local address: LID 0000 QPN 0x0213 PSN 0x2b2c3d",
        f" GID: {zeros}:255:255:{local}",
        " remote address: LID 0000 QPN 0x0214 PSN 0x5d5e6f",
        f" GID: {zeros}:255:255:{remote}",
        DASHES,
    ]


def table(*rows: str, unit: str = "Gb/sec") -> list[str]:
    """Return a table of bandwidths."""
    return [BW_HEADER.format(unit), *rows, DASHES]


def bandwidth(row: str = ROW_GBITS, unit: str = "Gb/sec", **how: object) -> str:
    """Return the output of one end of a test of bandwidth."""
    return text(head(**how), addresses(), table(row, unit=unit))  # type: ignore[arg-type]


def latency(typical: float = 1.61, test: str = "RDMA_Write", device: str = "mlx5_4") -> str:
    """Return the output of one end of a test of latency."""
    row = f" 2    1000       1.52           6.03         {typical}       1.64   0.05   1.72   6.03"
    return text(head(f"{test} Latency Test", device), addresses(), [LAT_HEADER, row, DASHES])


def text(*parts: list[str]) -> str:
    """Join lines."""
    return "\n".join(line for part in parts for line in part) + "\n"


def row(gbps: float, size: int = 1 << 20, iterations: int = 5000) -> str:
    """Return a row with this bandwidth in the format of --report_gbits."""
    mega = gbps * 1000 / 8 / size
    return f" {size}      {iterations}             {gbps:.2f}       {gbps:.2f}      {mega:.6f}"


NCCL = """\
# Collective test starting: {test}
# nThread 1 nGpus 1 minBytes 8 maxBytes 1048576 step: 2(factor) warmup iters: 5 iters: 20 \
agg iters: 1 validation: 1 graph: 0
#
# Using devices
#  Rank  0 Group  0 Pid   3101 on     node-a device  0 [0000:1b:00] NVIDIA H100 80GB HBM3
#  Rank  1 Group  0 Pid   2977 on     {other} device  0 [0000:1b:00] NVIDIA H100 80GB HBM3
#
#                                                              out-of-place                       \
in-place
#       size         count      type   redop    root     time   algbw   busbw #wrong     time   \
algbw   busbw #wrong
#        (B)    (elements)                               (us)  (GB/s)  (GB/s)            (us)  \
(GB/s)  (GB/s)
           8             2     float     sum      -1    21.50    0.00    0.00      0    21.10    \
0.00    0.00      0
  1073741824     268435456     float     sum      -1    23015   46.65   46.65      0    23100   \
46.48   46.48      {wrong}
# Out of bounds values : {wrong} {grade}
# Avg bus bandwidth    : 23.2825
#
"""


def nccl_tests(test: str = "all_reduce_perf", other: str = "node-b", wrong: int = 0) -> str:
    """Return the output of nccl-tests on two ranks."""
    grade = "FAILED" if wrong else "OK"
    return NCCL.format(test=test, other=other, wrong=wrong, grade=grade)


def nccl_log(hcas: int = 2, used: int | None = None, *, gpu_direct: bool = True) -> str:
    """Return NCCL's log of a job on nodes with HCAs, with channels over the first of them."""
    listed = " ".join(f"[{number}]mlx5_{number}:1/IB" for number in range(hcas))
    end = "/GDRDMA" if gpu_direct else ""
    return "".join(
        [
            f"n:1:1 [0] NCCL INFO NET/IB : Using {listed} [RO]; OOB eth0:10.0.0.1<0>\n",
            *(
                f"n:1:1 [0] NCCL INFO Channel 00/0 : 1[1] -> 2[0] [send] via NET/IB/{number}{end}\n"
                for number in range(hcas if used is None else used)
            ),
        ]
    )


def nccl_job(gpus: int = 8, nodes: int = 2, **fields: str) -> str:
    """Return the output of nccl-tests on nodes with some GPUs each."""
    ranks = "".join(
        f"#  Rank  {rank} Group  0 Pid  {rank + 1} on node-{rank // gpus} device  {rank % gpus}\n"
        for rank in range(gpus * nodes)
    )
    values = {"test": "all_reduce_perf", "size": "1073741824", "gbytes": "46.65", "wrong": "0"}
    return NCCL_JOB.format(ranks=ranks, **{**values, **fields})


NCCL_JOB = """\
$ {test} -b 8 -e 1G
# nThread 1 nGpus 1 minBytes 8 maxBytes 1073741824
{ranks}#       size         count      type   redop    root     time   algbw   busbw #wrong
  {size}     268435456     float     sum      -1    23015   46.65   {gbytes}      {wrong}
# Out of bounds values : 0 OK
"""


def _bars(*widths: int) -> str:
    return "+" + "+".join("-" * width for width in widths) + "+"


def _cell(field: str) -> str:
    return f"| {field:<104} |"


_GROUPS = _bars(14, 14, 30, 21, 23)
_COLUMNS = _bars(14, 14, 10, 9, 9, 10, 10, 11, 11)
_BOX = _bars(106)


def ucx_perftest(measure: str = "overhead", memory: str = "host") -> str:
    """Return the output of ucx_perftest."""
    test = "bandwidth" if measure == "overhead" else "latency"
    groups = f"|              |              | {measure + ' (usec)':^28} |   bandwidth (MB/s)  "
    columns = "|    Stage     | # iterations | 50.0%ile | average | overall |  average |  overall "
    return text(
        [_GROUPS, f"{groups}|  message rate (msg/s) |", _COLUMNS],
        [f"{columns}|  average  |  overall  |", _COLUMNS],
        ["Accepted connection from 10.20.0.2:40112", _BOX],
        [_cell("API:          protocol layer"), _cell(f"Test:         tag match {test}")],
        [_cell(f"Send memory:  {memory}"), _cell(f"Recv memory:  {memory}")],
        [_cell("Message size: 1048576"), _BOX],
        [UCX_ROW.format("[thread 0]", 700, 43.1, 42.95, 23283.0)],
        [UCX_ROW.format("Final:    ", 1000, 43.0, 42.92, 23299.16)],
    )


UCX_ROW = "{0} {1:>17} {2:10.3f} {3:9.3f} {3:9.3f} {4:11.2f} {4:10.2f}       23283       23299"


JSON = """\
{
test_info: {
test: RDMA_Write_BW_Test,
Dual_port: OFF,
Device: "mlx5_6",
Number_of_qps: 2,
Transport_type: IB,
PCIe_relax_order: ON,
Mtu: 2048,
Link_type: Ethernet,
GID_index: 3,
Use_CUDA_memory: ON,
Data_ex_method: Ethernet,
},
results: {
MsgSize: 65536,
n_iterations: 5000,
BW_peak: 5543.23,
BW_average: 5531.31,
MsgRate: 0.088501,
},
}
"""
VALID_JSON = (
    '{"test_info": {"test": "Send_Bidirectional_Latency_Test", "Device": "mlx5_7", "Mtu": 4096, '
    '"Link_type": "IB"}, "results": {"MsgSize": 8, "n_iterations": 1000, "t_min": 1.4, '
    '"t_max": 9.5, "t_typical": 1.5, "t_avg": 1.55, "t_stdev": 0.1, "percentile_99": 1.9, '
    '"percentile_99.9": 9.5}}\n'
)
PINGS = "".join(f"ping data: rdma-ping-{number}: ABCDEFGHIJKLMNOP\n" for number in range(3))
