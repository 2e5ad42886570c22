"""What contributors see first agrees with the code: hooks, workflows, versions in texts."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from webhook import __version__

ROOT = Path(__file__).parents[2]
MAKEFILE = (ROOT / "Makefile").read_text(encoding="utf-8")
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
HOOKS: list[dict[str, Any]] = [
    hook
    for repository in yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text("utf-8"))["repos"]
    for hook in repository["hooks"]
]

each_workflow = pytest.mark.parametrize("file", WORKFLOWS, ids=lambda file: file.name)


def _recipe(target: str) -> str:
    recipe = re.search(rf"^{target}:.*\n((?:\t.*\n)+)", MAKEFILE, re.MULTILINE)
    assert recipe, f"the Makefile has no target {target}"
    return recipe[1]


@each_workflow
def test_actions_are_pinned_by_commit(file: Path) -> None:
    """Actions are pinned by commit, since a tag can move; a comment has the version."""
    uses = re.findall(r"uses: (.*)", file.read_text(encoding="utf-8"))
    assert uses
    for action in uses:
        assert re.fullmatch(r"[\w./-]+@[0-9a-f]{40} # v[\d.]+", action)


@each_workflow
def test_the_workflow_calls_targets_that_exist(file: Path) -> None:
    """CI calls make targets, so that contributors can run the same."""
    called = re.findall(r"\bmake ([a-z0-9 -]+)", file.read_text(encoding="utf-8"))
    assert called
    for target in " ".join(called).split():
        _recipe(target)


def test_the_experiments_run_each_night() -> None:
    """Tests too long for a pull request do not depend on anybody's memory."""
    workflow = yaml.safe_load((ROOT / ".github" / "workflows" / "nightly.yml").read_text("utf-8"))
    # YAML 1.1 takes `on` for a boolean.
    (schedule,) = workflow[True]["schedule"]
    assert re.fullmatch(r"\d+ \d+ \* \* \*", schedule["cron"])
    steps = workflow["jobs"]["experiments"]["steps"]
    assert steps[-1]["run"].split()[-1] == "experiments"


def test_hooks_call_what_make_lint_calls() -> None:
    """Hooks call every tool of `make lint`, from .venv, so that each has only one version."""
    tools = {line.split()[0] for line in re.findall(r"\$\(BIN\)/(.*)", _recipe("lint"))}
    called = {
        hook["entry"].split()[0].removeprefix(".venv/bin/")
        for hook in HOOKS
        if hook["entry"].startswith(".venv/bin/")
    }
    assert called == tools
    for tool in called:
        assert (Path(sys.executable).parent / tool).exists()


def test_hooks_of_others_have_a_single_version() -> None:
    """Every tool that pre-commit installs is pinned to a version."""
    for hook in HOOKS:
        if hook["language"] == "python":
            assert re.fullmatch(r"[\w-]+==[\d.]+", *hook["additional_dependencies"])


def test_images_in_the_instructions_have_the_version() -> None:
    """A line copied from the instructions uses the image that the manifests name."""
    page = (ROOT / "docs" / "installation.md").read_text(encoding="utf-8")
    assert set(re.findall(r"rdma-webhook:(\d[\w.]*\w)", page)) == {__version__}
