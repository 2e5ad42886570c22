"""The text of a run, at the width of the terminal."""

from __future__ import annotations

from tests.unit.diagnose.verify.measured_runs import NO_MEMORY, Outcome, measured_run
from webhook.diagnose.verify.matrix_output import matrix_text
from webhook.diagnose.verify.results import NodePair
from webhook.model.finding import Finding

LATE = Finding("unsure", "Interrupted", "The run was interrupted.", "Run it again.")


def names(count: int) -> tuple[str, ...]:
    """Return names of nodes."""
    return tuple(f"gpu-{number:02}" for number in range(1, count + 1))


def full_rate(_pair: NodePair, _device: str) -> Outcome:
    """Return the outcome of a good port of 100 Gb/s."""
    return 97


def slow_third(pair: NodePair, _device: str) -> Outcome:
    """Return the outcome if the third node is slow."""
    return 12.5 if "gpu-03" in pair else 97


def test_the_whole_text() -> None:
    """The matrix, the suspects, each finding once, findings on the run, and the level."""
    report = measured_run(names(3), slow_third, devices=("mlx5_0", "mlx5_1"), findings=(LATE,))
    expected = """\
verify-k7: 3 nodes, 6 pairs of fabric v100-ib  image registry.example/perftest

Gb/s, the worst device of each pair
from ↓ to →  gpu-01  gpu-02  gpu-03
gpu-01               ✔ 97.0  ✘ 12.5
gpu-02       ✔ 97.0          ✘ 12.5
gpu-03       ✘ 12.5  ✘ 12.5
expected: 99.37 Gb/s = rateGbps 100 (fabric v100-ib) × 0.994 payload share at MTU 4096

Check first
  ✘ All 8 measurements with gpu-03 are bad (8 errors). All others: 4 ok. [SuspectNode]
    → Check this node first: its cards and their PCIe links (lspci -vv, LnkSta), its
      cables, and what else it runs.

✘ FarBelowRate
  ib_write_bw mlx5_0, gpu-01 → gpu-03, gpu-02 → gpu-03, gpu-03 → gpu-01, gpu-03 → gpu-02:
  12.5 Gb/s, 13% of the expected 99.37 Gb/s.
  ib_write_bw mlx5_1, gpu-01 → gpu-03, gpu-02 → gpu-03, gpu-03 → gpu-01, gpu-03 → gpu-02:
  12.5 Gb/s, 13% of the expected 99.37 Gb/s.
    → Compare this result with those of other pairs of nodes to find the slow port. Check
      the port's PCIe link (lspci -vv, LnkSta), the port's error counters, and whether
      other jobs use its network link.

Whole run
  ? The run was interrupted. [Interrupted]
    → Run it again.

✔ 2 of 6 pairs passed, 97 Gb/s
✘ error (FarBelowRate): 4 ok, 1 unsure, 8 errors
"""
    assert matrix_text(report, width=90) == expected


def overview(text: str) -> list[str]:
    """Return the lines of the matrix, or of the list."""
    return text.split("\n\n")[1].splitlines()[1:]


def test_numbered_columns() -> None:
    """If names do not fit side by side, columns have the numbers of the rows."""
    nodes = [f"{name}.rack-7" for name in names(10)]
    report = measured_run(nodes, lambda pair, _: 12.5 if nodes[2] in pair else 97)
    lines = overview(matrix_text(report, width=100))
    assert lines[0].split() == ["from", "↓", "to", "→", *map(str, range(1, 11))]
    assert lines[3] == " 3 gpu-03.rack-7  ✘ 12.5  ✘ 12.5          " + "  ".join(["✘ 12.5"] * 7)


def test_signs_alone() -> None:
    """If numbers do not fit either, signs show 32 nodes in 100 columns."""
    lines = overview(matrix_text(measured_run(names(32), slow_third), width=100))
    assert max(map(len, lines)) <= 100
    assert lines[1].split() == ["1", "gpu-01", "✔", "✘", *["✔"] * 29]
    assert lines[3].split() == ["3", "gpu-03", *["✘"] * 31]
    assert sum(line.count("✔") + line.count("✘") for line in lines) == 32 * 31


def test_a_list_where_no_matrix_fits() -> None:
    """On a narrow terminal, each pair has a line."""
    report = measured_run(names(20), slow_third)
    lines = overview(matrix_text(report, width=48))
    assert lines[0].split() == ["client", "→", "server", "mlx5_0"]
    assert lines[2] == "gpu-01 → gpu-03  ✘ 12.5"
    assert len(lines) == 1 + 20 * 19 + 2  # the heading, and the expectation in two lines


def test_two_nodes_are_a_list() -> None:
    """A matrix of two nodes would be half empty: pairs are rows, devices columns."""
    report = measured_run(names(2), full_rate, devices=("mlx5_0", "mlx5_1"))
    assert overview(matrix_text(report))[:3] == [
        "client → server  mlx5_0  mlx5_1",
        "gpu-01 → gpu-02  ✔ 97.0  ✔ 97.0",
        "gpu-02 → gpu-01  ✔ 97.0  ✔ 97.0",
    ]


def test_more_devices_than_columns() -> None:
    """On a narrow terminal, the devices of a pair follow one another."""
    report = measured_run(
        names(2),
        lambda pair, _: NO_MEMORY if pair.client == "gpu-02" else 97,
        devices=[f"mlx5_{number}" for number in range(4)],
    )
    assert overview(matrix_text(report, width=40))[:4] == [
        "gpu-01 → gpu-02  ✔ 97.0 mlx5_0  ✔ 97.0",
        "mlx5_1  ✔ 97.0 mlx5_2  ✔ 97.0 mlx5_3",
        "gpu-02 → gpu-01  ✘ 4 no device",
        "expected: 99.37 Gb/s = rateGbps 100",
    ]


def test_pairs_that_were_not_measured() -> None:
    """A pair without a result has a dot, and the diagonal is empty."""
    nodes = names(3)
    pairs = [NodePair(nodes[0], nodes[1]), NodePair(nodes[0], nodes[2]), NodePair(*nodes[1:])]
    lines = overview(matrix_text(measured_run(nodes, full_rate, pairs=pairs)))
    assert lines[1:4] == [
        "gpu-01               ✔ 97.0  ✔ 97.0",
        "gpu-02       ·               ✔ 97.0",
        "gpu-03       ·       ·",
    ]


def test_many_sentences() -> None:
    """Of many sentences with the same code, the slowest are listed; the others are counted."""
    speeds = iter(range(10, 60))
    text = matrix_text(measured_run(names(4), lambda _pair, _device: next(speeds)))
    assert text.count("of the expected 99.37 Gb/s") == 6
    assert "gpu-01 → gpu-02: 10.0 Gb/s, 10% of the expected" in text
    assert "  and 6 more (see -o json)\n" in text


def test_nothing_was_measured() -> None:
    """A run that was interrupted before its first result has only findings."""
    report = measured_run(names(2), full_rate, pairs=(), findings=(LATE,))
    assert matrix_text(report) == (
        "verify-k7: 2 nodes, 0 pairs of fabric v100-ib  image registry.example/perftest\n\n"
        "Whole run\n  ? The run was interrupted. [Interrupted]\n    → Run it again.\n\n"
        "? unsure (Interrupted): 1 unsure\n"
    )


def test_color() -> None:
    """Signs and numbers are colored by their level."""
    text = matrix_text(measured_run(names(3), slow_third), color=True)
    assert "\x1b[32m✔ 97.0\x1b[0m" in text
    assert "\x1b[1;31m✘ 12.5\x1b[0m" in text
