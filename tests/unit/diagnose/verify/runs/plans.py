"""Plans of runs, and the output of perftest in them, for tests."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tests.unit.diagnose.tools.benchmarks.outputs import bandwidth, row
from webhook.diagnose.verify.results import PortRate
from webhook.diagnose.verify.runs.plan import RunPlan, ring_rounds
from webhook.model.fabric import Fabric, RdmaResource

HCAS = ("mlx5_0", "mlx5_1")
FABRIC = Fabric(
    name="v100-ib",
    rate_gbps=100,
    hcas=HCAS,
    gpu_resources=frozenset({"nvidia.com/v100"}),
    resources=(RdmaResource(name="rdma/rdma_v100"),),
)


def plan_of(nodes: Sequence[str] = ("a", "b"), fabric: Fabric = FABRIC, **changes: Any) -> RunPlan:
    """Return a plan for a ring of nodes."""
    plan = RunPlan(
        name="verify-0123abcd",
        fabric=fabric,
        nodes=tuple(nodes),
        rounds=tuple(ring_rounds(nodes)),
        image="perftest",
        rate=PortRate(100, "rateGbps 100 (fabric v100-ib)"),
        tests=("ib_write_bw",),
        seconds=10,
        start_timeout=60,
    )
    return plan._replace(**changes)


def command(hca: str, port: int, server: str = "", test: str = "ib_write_bw") -> str:
    """Return a command as `pair.sh` prints it."""
    options = "-F -q 4 -s 1048576 -D 10 --report_gbits" if test.endswith("bw") else "-F -s 8"
    return f"+ {test} -d {hca} -p {port} {options}{f' {server}' if server else ''}\n"


def measured(hca: str, port: int, gbps: float, server: str = "10.1.2.3") -> str:
    """Return the output of an end for a successful test."""
    table = bandwidth(row(gbps), qps=4).replace("mlx5_4", hca)
    return command(hca, port, server) + table


def client_log(gbps: float = 95) -> str:
    """Return the log of a client whose HCAs all reach a rate."""
    return "".join(measured(hca, 18515 + index, gbps) for index, hca in enumerate(HCAS))
