"""What clouds publish as the least bandwidth of their healthy machines: second evidence.

Each number is from a health check of the cloud itself, at the commit in its source. The machine is
known only from the option --machine: no output of a benchmark names it. Google's check runs
all_gather_perf on two nodes (src/nccl_healthcheck/nccl_startup.py there), and Oracle's runs
all_reduce_perf. Oracle's minimums for GB200 and GB300 are not here: its test of those might use
NVLink only.
"""

from __future__ import annotations

from typing import Literal, NamedTuple, Self

from webhook.diagnose.tools.benchmarks.measurements import Measurement
from webhook.diagnose.verify.collective import GIGABYTE
from webhook.diagnose.verify.results import BenchmarkResult
from webhook.model.finding import Code

BELOW_PUBLISHED = Code(
    "BelowPublished",
    "The bandwidth is below the minimum that the cloud's health check requires for this type of "
    "machine (--machine).",
    "Compare this result with those of other pairs of nodes, and report to the cloud provider any "
    "node that is slower than the others.",
)

_AZURE = "https://github.com/Azure/azurehpc-health-checks/blob"
_GOOGLE = "https://github.com/GoogleCloudPlatform/cluster-health-scanner/blob"
_GOOGLE_CHECK = "deploy/helm/health_checks/nccl_healthcheck"
_ORACLE = (
    "https://github.com/oracle-quickstart/oci-hpc/blob/976facbaa470a4a880c68e69a64b6be530664900/"
    "playbooks/roles/healthchecks/files/multi_node_active_healthcheck.py"
)


class PublishedMinimum(NamedTuple):
    """The least bandwidth in a cloud's health check of a machine type."""

    machine: str
    test: Literal["ib_write_bw", "all_gather_perf", "all_reduce_perf"]
    #: perftest: whether a GPU's memory is sent. nccl-tests always send it.
    cuda: bool
    #: nccl-tests: the number of nodes; None for perftest.
    nodes: int | None
    #: In Gb/s.
    gbps: float
    source: str

    @classmethod
    def of_oracle(cls, machine: str, gigabytes: float) -> Self:
        """Return the minimum of Oracle's check of two nodes of a shape."""
        return cls(machine, "all_reduce_perf", True, 2, gigabytes * GIGABYTE, _ORACLE)

    def applies_to(self, measurement: Measurement) -> bool:
        """Return whether a run is such a test as the health check has."""
        return (
            measurement.test == self.test
            and bool(measurement.cuda) == self.cuda
            and measurement.nodes == self.nodes
            and not measurement.bidirectional
        )


PUBLISHED = (
    PublishedMinimum(
        "Standard_ND96asr_v4", "ib_write_bw", True, None, 185,
        f"{_AZURE}/4bfa9a762462cd872341f17cb3e1d54805f401a9/conf/nd96asr_v4.conf",
    ),
    PublishedMinimum(
        "Standard_ND96isr_H100_v5", "ib_write_bw", True, None, 380,
        f"{_AZURE}/7e6ac7796e4398d2a6b0b29ca39f1060f0a993cb/conf/nd96isr_h100_v5.conf",
    ),
    PublishedMinimum(
        "Standard_ND96isr_H200_v5", "ib_write_bw", True, None, 360,
        f"{_AZURE}/13fa400b10f5cb8d900cf02ea0cdda958a2082b9/conf/nd96isr_h200_v5.conf",
    ),
    PublishedMinimum(
        "Standard_ND96isr_MI300X_v5", "ib_write_bw", False, None, 390,
        f"{_AZURE}/0894d23697d67bb59ae833d21887edabbb993ef8/conf/nd96isr_mi300x_v5.conf",
    ),
    PublishedMinimum(
        "a3-ultragpu-8g", "all_gather_perf", True, 2, 250 * GIGABYTE,
        f"{_GOOGLE}/af415e4bac82c45176522b6597b5fea1b0c02b4d/{_GOOGLE_CHECK}/a3ultra.yaml",
    ),
    PublishedMinimum(
        "a4-highgpu-8g", "all_gather_perf", True, 2, 250 * GIGABYTE,
        f"{_GOOGLE}/28f25fcb219bf530dcad3889c51ae8597e75de47/{_GOOGLE_CHECK}/a4.yaml",
    ),
    PublishedMinimum(
        "a4x-highgpu-4g", "all_gather_perf", True, 2, 160 * GIGABYTE,
        f"{_GOOGLE}/e73b1da1485d86f58e14e2a093e34b81b562e2e5/{_GOOGLE_CHECK}/a4x.yaml",
    ),
    PublishedMinimum.of_oracle("BM.GPU4.8", 185),
    PublishedMinimum.of_oracle("BM.GPU.B4.8", 185),
    PublishedMinimum.of_oracle("BM.GPU.A100-v2.8", 185),
    PublishedMinimum.of_oracle("BM.GPU.H100.8", 440),
    PublishedMinimum.of_oracle("BM.GPU.H200.8", 440),
    PublishedMinimum.of_oracle("BM.GPU.B200.8", 440),
    PublishedMinimum.of_oracle("BM.GPU.B300.8", 700),
    PublishedMinimum.of_oracle("BM.GPU.MI300X.8", 350),
    PublishedMinimum.of_oracle("BM.GPU.MI355X.8", 350),
    PublishedMinimum.of_oracle("BM.GPU.MI355X-v0.8", 350),
    PublishedMinimum.of_oracle("BM.GPU.MI355X-v1.8", 350),
)  # fmt: skip
MACHINES = tuple(minimum.machine for minimum in PUBLISHED)
#: Those with a minimum for nccl-tests.
NCCL_MACHINES = tuple(minimum.machine for minimum in PUBLISHED if minimum.nodes is not None)


def with_published(result: BenchmarkResult, machine: str) -> BenchmarkResult:
    """Return the result with the published minimum, a warning if a run that is ok is below it.

    `machine` is one of MACHINES, or "" if it is unknown.
    """
    measurement, gbps = result.measurement, result.gbps
    if measurement is None or gbps is None:
        return result
    minimum = next(
        (
            minimum
            for minimum in PUBLISHED
            if minimum.machine == machine and minimum.applies_to(measurement)
        ),
        None,
    )
    if minimum is None:
        return result
    below = gbps < minimum.gbps
    finding = result.finding
    text = (
        f"{finding.text} {'Less' if below else 'No less'} than the {_amount(minimum)} of the "
        f"health check for {machine}."
    )
    if below and finding.level == "ok":
        finding = BELOW_PUBLISHED.finding("warning", text, location=finding.location)
    else:
        finding = finding._replace(text=text)
    return result._replace(finding=finding, citation=result.citation or minimum.source)


def _amount(minimum: PublishedMinimum) -> str:
    if minimum.nodes is None:
        return f"{minimum.gbps:g} Gb/s"
    return f"{minimum.gbps / GIGABYTE:g} GB/s"
