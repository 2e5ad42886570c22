"""docs/verify.md shows the output of a run."""

from __future__ import annotations

from tests.generated_pages import DOCS, assert_up_to_date
from tests.unit.diagnose.verify.measured_runs import Outcome, measured_run
from webhook.diagnose.verify.matrix_output import matrix_text
from webhook.diagnose.verify.results import NodePair
from webhook.diagnose.verify.runs.plan import all_pair_rounds

PAGE = DOCS / "verify.md"
NODES = ("v100-01", "v100-02", "v100-03", "v100-04")


def _outcome(pair: NodePair, device: str) -> Outcome:
    """Return the outcome if a single HCA is slow; other ports differ a little."""
    slow = "v100-03" in pair and device == "mlx5_1"
    return 48.2 if slow else 96.4 + NODES.index(pair.client) / 5 + NODES.index(pair.server) / 10


def test_the_example() -> None:
    """The example is the output of a run with --all-pairs, graded from outputs of perftest."""
    pairs = [pair for pairs_at_once in all_pair_rounds(NODES) for pair in pairs_at_once]
    report = measured_run(NODES, _outcome, pairs=pairs, devices=("mlx5_0", "mlx5_1"))
    section = f"\n```text\n{matrix_text(report, width=100)}```\n"
    assert_up_to_date(PAGE, "<!-- matrix -->", "<!-- end of matrix -->", section)
