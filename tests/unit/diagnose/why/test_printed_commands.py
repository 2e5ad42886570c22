"""Commands in remedies: names come from messages and files of others, and people paste commands."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import webhook
from tests.unit.diagnose.why.pods import chapter_findings, explain
from tests.unit.diagnose.why.test_no_pods import QUOTA, SILENT, refused
from tests.unit.diagnose.why.test_pending_nodes import FULL
from tests.unit.diagnose.why.test_pod_status import pending
from webhook.diagnose import why

FILES = sorted(Path(str(why.__file__)).parent.glob("*.py"))
PACKAGE = Path(str(webhook.__file__)).parent
WITH_MESSAGES = sorted(
    file
    for package in ("admission", "decide", "diagnose", "serve/status")
    for file in PACKAGE.joinpath(package).rglob("*.py")
)
#: Text that ends inside a command.
_COMMAND = re.compile(
    r"(?:kubectl (?:create|delete|describe|get|label|logs|patch|rollout|taint|uncordon)"
    r"|rdma-webhook why)[^.;,)]*$"
)
#: What needs no quotes: words of the program itself.
_OWN_WORDS = {"OPT_IN_LABEL", "before", "kind.plural"}
_ODD = "a;b$(c)"
_QUOTED = "'a;b$(c)'"


def _unquoted(tree: ast.Module) -> Iterator[str]:
    """Yield the values in commands, except quoted ones; a name counts as its assigned values."""
    assigned: dict[str, list[str]] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            assigned.setdefault(node.targets[0].id, []).append(ast.unparse(node.value))
    for node in ast.walk(tree):
        text = ""
        for part in node.values if isinstance(node, ast.JoinedStr) else ():
            if isinstance(part, ast.FormattedValue):
                value = ast.unparse(part.value)
                sources = assigned.get(value, [value])
                safe = value in _OWN_WORDS or all(s.startswith("shlex.") for s in sources)
                if _COMMAND.search(text) and not safe:
                    yield value
                text += "x"
            else:
                text += str(ast.literal_eval(part))


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_every_name_in_a_command_is_quoted(file: Path) -> None:
    """A name with the shell's characters would run a command of the stranger who chose it."""
    assert [*_unquoted(ast.parse(file.read_text(encoding="utf-8")))] == []


def test_the_search_finds_an_unquoted_name() -> None:
    """The name of the variable does not matter, but the value assigned to it does."""
    source = """
quoted = shlex.quote(name)
plain = name
f"Run kubectl get pods -n {quoted} --all {plain}. Not {name}."
f"See {name}"
"""
    assert [*_unquoted(ast.parse(source))] == ["plain"]


#: A command that a mark follows; a command in parentheses ends clearly.
_UNMARKED = re.compile(
    r"(?<![`(\w/-])(?:kubectl|rdma-webhook) (?:certs|create|delete|describe|exec|fabrics|get"
    r"|label|logs|patch|port-forward|preview|rollout|scale|taint|uncordon|why|-n \w+)\b"
    r"(?:[^`.,;()]|[.,](?=\S))*[.,;](?!\S)"
)


def _texts(tree: ast.Module) -> Iterator[str]:
    """Yield all strings of a module but docstrings; a value in one is an x."""
    parts = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr):
            parts.add(id(node.value))
        elif isinstance(node, ast.JoinedStr):
            parts |= set(map(id, ast.walk(node)))
            yield "".join(
                "x" if isinstance(part, ast.FormattedValue) else str(ast.literal_eval(part))
                for part in node.values
            )
        elif (
            isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in parts
        ):
            yield node.value


@pytest.mark.parametrize("file", WITH_MESSAGES, ids=lambda file: str(file.relative_to(PACKAGE)))
def test_a_command_ends_before_the_mark_that_follows_it(file: Path) -> None:
    """Who copies a command must not copy the period of its sentence: backticks enclose it."""
    texts = _texts(ast.parse(file.read_text(encoding="utf-8")))
    assert [match[0] for text in texts for match in _UNMARKED.finditer(text)] == []


def test_a_forged_event_runs_nothing() -> None:
    """A user who may create Events chooses the names in a refusal that an administrator reads."""
    remedy = refused(SILENT.replace("rdma-system", _ODD)).remedy
    assert f"kubectl get services,endpointslices,pods -n {_QUOTED}`. " in remedy
    remedy = refused(QUOTA.replace("quota: nics", f"quota: {_ODD}")).remedy
    assert f"kubectl describe quota {_QUOTED} -n lab` shows. " in remedy


def test_a_forged_message_of_the_scheduler_runs_nothing() -> None:
    """The name of a resource in it is quoted for grep."""
    pod = pending(FULL.replace("nvidia.com/v100", _ODD))
    (finding, *_) = chapter_findings(explain(pod), "podStatus")
    assert f"grep {_QUOTED}`. If one" in finding.remedy


def test_a_name_in_a_file_runs_nothing() -> None:
    """`why -f` reads manifests of others: a gate's remedy has the pod's namespace."""
    pod = pending(
        "gated", "SchedulingGated", schedulingGates=[{"name": "kueue.x-k8s.io/admission"}]
    )
    pod["metadata"]["namespace"] = _ODD
    (finding, *_) = chapter_findings(explain(pod), "podStatus")
    assert f"kubectl get workloads -n {_QUOTED}` " in finding.remedy
