"""The script of a run's pods, run for real by three shells.

There is no RDMA device here: `ib_write_bw` is a script that listens and prints as its arguments
require. /dev, /sys, /proc and /tmp are below a folder of the test.
"""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.integration.programs import require_program
from tests.waiting import until
from webhook.diagnose.tools.benchmarks.perftest_commands import perftest_command
from webhook.diagnose.verify.runs.pair_output import devices_in, pair_log

SCRIPT = Path(__file__).parents[2] / "webhook/diagnose/verify/runs/pair.sh"
#: A server listens in the table of sockets until its client comes; `bad` devices fail at once.
#: A client prints its words; with `slow` devices it never ends.
PERFTEST = """\
#!/bin/sh
case "$*" in
*bad*) echo "IB device not found" >&2; exit 1 ;;
*slow*) exec sleep 300 ;;
*10.1.2.3* | *fd00::1*) echo "measured $*"; exit 0 ;;
esac
while [ "$1" != -p ]; do shift; done
printf '   0: 00000000:%04X 00000000:0000 0A 00000000\\n' "$2" >>@ROOT@/proc/net/tcp
until [ -e "@ROOT@/client.$2" ]; do sleep 0.1; done
echo "served $2"
"""


class Pod:
    """A container with a shell, devices and a fake perftest."""

    def __init__(self, root: Path, shell: tuple[str, ...]) -> None:
        self.root = root
        self._shell = shell
        for folder in ("bin", "tmp", "proc/net", "dev/infiniband"):
            (root / folder).mkdir(parents=True)
        (root / "proc/net/tcp").write_text("  sl  local_address rem_address   st\n")
        for test in ("ib_write_bw", "ib_write_lat"):
            program = root / "bin" / test
            program.write_text(PERFTEST.replace("@ROOT@", str(root)))
            program.chmod(0o755)

    def device(self, place: int, name: str, *, usable: bool = True) -> None:
        """Add an RDMA device, which this container can open or not."""
        folder = self.root / "sys/class/infiniband_verbs" / f"uverbs{place}"
        folder.mkdir(parents=True)
        (folder / "ibdev").write_text(f"{name}\n")
        if usable:
            (self.root / "dev/infiniband" / f"uverbs{place}").touch()

    def start(
        self,
        *words: str,
        address: str = "10.1.2.3",
        count: int = 0,
        limit: int = 30,
        tests: str = "ib_write_bw",
        env: dict[str, str] | None = None,
    ) -> subprocess.Popen[str]:
        """Start the script as a role with these HCAs."""
        role, *hcas = words
        arguments = ["rdma-verify", role, address, str(count), "5", str(limit), tests, *hcas]
        path = f"{self.root / 'bin'}:/usr/bin:/bin"
        return subprocess.Popen(
            [*self._shell, "-c", SCRIPT.read_text().replace("@ROOT@", str(self.root)), *arguments],
            env={"PATH": path, **(env or {})},
            stdout=subprocess.PIPE,
            text=True,
        )

    def run(self, *words: str, **how: object) -> tuple[int, list[str]]:
        """Run the script to its end; return the exit code and the lines that it printed."""
        process = self.start(*words, **how)  # type: ignore[arg-type]
        out, _ = process.communicate(timeout=300)
        return process.returncode, out.splitlines()

    @property
    def ready(self) -> bool:
        """Whether the probe of the server's pod would find it ready."""
        return (self.root / "tmp/rdma-verify/ready").exists()


@pytest.fixture(params=["dash", "bash", "busybox"])
def pod(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Pod]:
    """Return a container with one of the shells."""
    program = require_program(
        request.param, f"{request.param}-static".replace("dash-static", "dash")
    )
    shell = (program, "sh") if request.param == "busybox" else (program,)
    yield Pod(tmp_path / "root", shell)
    shutil.rmtree(tmp_path)


def commands(lines: list[str]) -> list[str]:
    """Return the commands that were printed."""
    return [line.removeprefix("+ ") for line in lines if line.startswith("+ ")]


def test_a_client_measures_in_sequence(pod: Pod) -> None:
    """Each command is printed before its output; both tests of an HCA have their own ports."""
    code, lines = pod.run("client", "mlx5_0", "mlx5_1", tests="ib_write_bw ib_write_lat")
    assert code == 0
    bandwidth = "-F -q 4 -s 1048576 -D 5 --report_gbits 10.1.2.3"
    expected = [
        f"ib_write_bw -d mlx5_0 -p 18515 {bandwidth}",
        "ib_write_lat -d mlx5_0 -p 18516 -F -s 8 10.1.2.3",
        f"ib_write_bw -d mlx5_1 -p 18517 {bandwidth}",
        "ib_write_lat -d mlx5_1 -p 18518 -F -s 8 10.1.2.3",
    ]
    assert commands(lines) == expected
    assert lines[::2] == [f"+ {command}" for command in expected]
    log = pair_log("\n".join(lines), "")
    assert [(section.test, section.device) for section in log.sections] == [
        (test, hca) for hca in ("mlx5_0", "mlx5_1") for test in ("ib_write_bw", "ib_write_lat")
    ]


def test_settings_of_the_webhook(pod: Pod) -> None:
    """GID index, service level and traffic class are what NCCL would use."""
    env = {"NCCL_IB_GID_INDEX": "3", "NCCL_IB_SL": "2", "NCCL_IB_TC": "106"}
    _, lines = pod.run("client", "mlx5_0", address="fd00::1", env=env)
    assert commands(lines)[0].endswith("-x 3 -S 2 --tclass=106 --ipv6-addr fd00::1")


def test_a_test_that_never_ends(pod: Pod) -> None:
    """It is ended with a message, and the next test begins."""
    _, lines = pod.run("client", "slow_0", "mlx5_1", limit=1)
    assert "rdma-verify: 'ib_write_bw' on slow_0 printed no result within 1 s" in lines
    assert lines[-1].startswith("measured ")


def test_a_test_that_fails(pod: Pod) -> None:
    """Its standard error follows its command, and then its exit code."""
    _, lines = pod.run("client", "bad_0")
    assert [bool(perftest_command(line)) for line in lines] == [True, False, False]
    assert lines[1:] == [
        "IB device not found",
        "rdma-verify: 'ib_write_bw' on bad_0 ended with exit code 1",
    ]


@pytest.mark.parametrize(
    ("value", "chosen"),
    [
        ("", ["bond_0", "mlx5_0", "mlx5_2", "mlx5_10"]),
        ("=mlx5_0,mlx5_10", ["mlx5_0", "mlx5_10"]),
        ("=mlx5_0:1", ["mlx5_0"]),
        ("mlx5", ["mlx5_0", "mlx5_2", "mlx5_10"]),
        ("mlx5_1", ["mlx5_10"]),
        ("^=bond_0", ["mlx5_0", "mlx5_2", "mlx5_10"]),
        ("^mlx5", ["bond_0"]),
    ],
    ids=["unset", "exact", "port", "prefix", "other prefix", "not exact", "not prefix"],
)
def test_devices_without_a_list(pod: Pod, value: str, chosen: list[str]) -> None:
    """The devices that the container may open and NCCL would use, in natural order."""
    for place, name in enumerate(["mlx5_10", "mlx5_2", "bond_0", "mlx5_0"]):
        pod.device(place, name)
    pod.device(10, "mlx5_11", usable=False)
    _, lines = pod.run("client", env={"NCCL_IB_HCA": value} if value else {})
    assert devices_in("\n".join(lines)) == chosen
    assert [line.split()[2] for line in commands(lines)] == chosen


@pytest.mark.parametrize(("count", "measured"), [(0, 2), (1, 1), (2, 2), (5, 2)])
def test_no_more_than_the_server_has(pod: Pod, count: int, measured: int) -> None:
    """A client with more devices than the server leaves the others unused."""
    for place in range(2):
        pod.device(place, f"mlx5_{place}")
    _, lines = pod.run("client", count=count)
    assert len(commands(lines)) == measured


@pytest.mark.parametrize("role", ["server", "client"])
def test_nothing_to_measure_with(pod: Pod, role: str) -> None:
    """A message names what is missing, and the pod fails."""
    code, lines = pod.run(role)
    assert (code, lines[-1]) == (1, "rdma-verify: this container has no RDMA device")
    code, lines = pod.run(role, "mlx5_0", tests="ib_none")
    assert perftest_command(lines[0]) is None
    assert (code, lines) == (127, ["rdma-verify: this image has no 'ib_none'"])
    assert not pod.ready


def test_a_server_waits_for_its_clients(pod: Pod) -> None:
    """It is ready once each program listens or has failed; each is printed when it ends."""
    process = pod.start("server", "mlx5_0", "bad_1", "mlx5_2")
    assert process.stdout is not None
    until(lambda: pod.ready)
    assert next(process.stdout).startswith("+ ib_write_bw -d bad_1 -p 18516 ")
    (pod.root / "client.18517").touch()
    lines = [process.stdout.readline().strip() for _ in range(4)]
    assert lines[:2] == [
        "IB device not found",
        "rdma-verify: 'ib_write_bw' on bad_1 ended with exit code 1",
    ]
    assert lines[3] == "served 18517"
    (pod.root / "client.18515").touch()
    out, _ = process.communicate(timeout=300)
    assert out.splitlines()[-1] == "served 18515"
    assert process.returncode == 0


def test_a_server_without_listeners(pod: Pod) -> None:
    """Its pod ends and never becomes ready; each failure is printed."""
    _, lines = pod.run("server", "bad_0", "bad_1")
    assert len(commands(lines)) == 2
    assert lines.count("IB device not found") == 2
    assert not pod.ready
