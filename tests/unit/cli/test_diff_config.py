"""diff-config shows the changes of a new fabrics file."""

from __future__ import annotations

import json

from tests.unit.cli.shell import FABRICS, Shell


def test_diff_config_reports_the_changes_of_a_new_file(shell: Shell) -> None:
    """Exit codes as for diff: 0 no change, 1 a change, 2 an input that cannot be read."""
    shell.file("new.yaml", FABRICS.replace("mlx5_0", "mlx5_7"))
    against = ("-c", "fabrics.yaml", "-f", "pod.yaml")
    assert shell("diff-config", "fabrics.yaml", *against).code == 0
    changed = shell("diff-config", "new.yaml", *against)
    assert changed.code == 1
    assert "mlx5_7" in changed.out
    report = json.loads(shell("diff-config", "new.yaml", *against, "-o", "json").out)
    assert [change["name"] for change in report["changes"]] == ["trainer"]
    for words in (("missing.yaml", *against), ("new.yaml", "-c", "missing.yaml", "-f", "pod.yaml")):
        answer = shell("diff-config", *words)
        assert (answer.code, answer.out) == (2, "")
        assert "missing.yaml: no such file or directory" in answer.err
    incomplete = shell(
        "diff-config", "new.yaml", "-c", "fabrics.yaml", "-f", "pod.yaml", "-f", "gone.yaml"
    )
    assert incomplete.code == 2
    assert "mlx5_7" in incomplete.out
    assert "gone.yaml" in incomplete.err
    shell.file("empty.yaml", "")
    assert (
        "contains no documents"
        in shell("diff-config", "new.yaml", "-c", "fabrics.yaml", "-f", "empty.yaml").err
    )
