from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from release import checkout

#: A commit needs an author and a time; the tests' own, not the developer's.
IDENTITY = {
    "GIT_AUTHOR_NAME": "test",
    "GIT_AUTHOR_EMAIL": "test@example.com",
    "GIT_COMMITTER_NAME": "test",
    "GIT_COMMITTER_EMAIL": "test@example.com",
    "GIT_COMMITTER_DATE": "2026-01-02T03:04:05Z",
    "GIT_CONFIG_GLOBAL": "/dev/null",
}


def git(root: Path, *arguments: str) -> None:
    """Run git in a folder."""
    environ = {**os.environ, **IDENTITY}
    subprocess.run(["git", *arguments], cwd=root, env=environ, check=True, capture_output=True)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Return a checkout that can become version 1.2.0."""
    (tmp_path / "webhook").mkdir()
    (tmp_path / "webhook" / "__init__.py").write_text('"""Text."""\n\n__version__ = "1.2.0"\n')
    (tmp_path / "CHANGELOG.md").write_text("# Changelog\n\n## 1.2.0 (2026-01-02)\n\n## 1.1.0\n")
    git(tmp_path, "init", "--quiet")
    commit(tmp_path)
    return tmp_path


def commit(root: Path) -> None:
    """Commit all files."""
    git(root, "add", ".")
    git(root, "commit", "--quiet", "--allow-empty", "--message", "A commit")


def test_a_clean_checkout_of_the_version_is_fit(root: Path) -> None:
    """Also if the commit has the tag already, annotated or not."""
    assert checkout.problems(root, "1.2.0") == []
    git(root, "tag", "v1.2.0")
    assert checkout.problems(root, "1.2.0") == []
    git(root, "tag", "--force", "--annotate", "--message", "Tagged", "v1.2.0")
    assert checkout.problems(root, "1.2.0") == []


def test_changes_are_named(root: Path) -> None:
    """A release is made from a commit, so nothing else may look like a part of it."""
    (root / "new.yaml").write_text("")
    expected = "new.yaml: not committed; commit the changes or remove them"
    assert checkout.problems(root, "1.2.0") == [expected]
    (root / "CHANGELOG.md").write_text("## 1.2.0")
    expected = "CHANGELOG.md and 1 more: not committed; commit the changes or remove them"
    assert checkout.problems(root, "1.2.0") == [expected]


def test_all_problems_are_named(root: Path) -> None:
    """One run shows all that has to be done."""
    git(root, "tag", "v1.1")
    commit(root)
    assert checkout.problems(root, "1.1") == [
        "the tag v1.1 is on another commit; check that out, or choose a new version",
        'webhook/__init__.py: __version__ is "1.2.0", not "1.1"; change one of them',
        "CHANGELOG.md: no section ## 1.1; rename Unreleased, and add the date",
    ]


def test_an_export_has_the_committed_files(
    root: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Nothing else in the checkout gets into a release."""
    (root / "secret.key").write_text("x")
    folder = tmp_path_factory.mktemp("export")
    previous = os.umask(0o077)
    try:
        checkout.export(root, folder)
    finally:
        os.umask(previous)
    files = {
        file.relative_to(folder).as_posix(): file.stat().st_mode for file in folder.rglob("*.*")
    }
    assert files == {"CHANGELOG.md": 0o100644, "webhook/__init__.py": 0o100644}
    assert checkout.commit_time(root) == 1767323045
