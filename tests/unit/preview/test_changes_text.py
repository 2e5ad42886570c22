"""Tests of the comparison as text, to the letter and with its colors."""

from __future__ import annotations

from typing import Any

from webhook.preview.comparison import (
    Comparison,
    ConfiguredDecision,
    Difference,
    PodChange,
    changes_text,
)

EQUIPPED = ConfiguredDecision(
    allowed=True, rdma="yes", because="Equipped", message="it is", fabric="v100-ib"
)
LOST = ConfiguredDecision(
    allowed=True, rdma="no", because="NoTarget", message="no fabric", fabric=None
)
DENIED = ConfiguredDecision(
    allowed=False, rdma="no", because="Ambiguous", message="two fabrics", fabric="b"
)
LEAVES = (
    Difference("spec.a", None, "1"),
    Difference("spec.b", "2", None),
    Difference("spec.c", "", "4"),
    Difference("spec.d", None, ""),
)
BOLD, DIM, RED, GREEN, YELLOW = (f"\x1b[{style}m" for style in (1, 2, 31, 32, 33))
LOUD, END = "\x1b[1;31m", "\x1b[0m"


def change(
    before: ConfiguredDecision, after: ConfiguredDecision, *leaves: Difference, **fields: Any
) -> PodChange:
    """Make a change of a pod without a template."""
    named: dict[str, Any] = {"kind": "Pod", "namespace": "lab", "name": "a", "path": "", "role": ""}
    return PodChange(**{**named, **fields}, before=before, after=after, differences=leaves)


def text(*changes: PodChange, **how: Any) -> list[str]:
    """Write changes; return the lines."""
    return changes_text(Comparison(compared=9, changes=changes), **how).splitlines()


def test_a_changed_pod() -> None:
    """The object, both verdicts, the reason, both fabrics, and each value after a sign."""
    role = {"path": "spec.template", "role": "launcher"}
    assert text(change(EQUIPPED, LOST, *LEAVES, **role)) == [
        "Pod lab/a  spec.template launcher",
        "  RDMA yes (Equipped) → no (NoTarget)",
        "  no fabric",
        "  fabric v100-ib → none",
        "  + spec.a: 1",
        "  - spec.b: 2",
        '  ~ spec.c: "" → 4',
        '  + spec.d: ""',
        "",
        "1 of 9 pods would get a different decision; 1 of them would lose RDMA.",
    ]
    assert text(change(LOST, DENIED), change(EQUIPPED, EQUIPPED, LEAVES[0])) == [
        "Pod lab/a",
        "  RDMA no (NoTarget) → denied (Ambiguous)",
        "  two fabrics",
        "  fabric none → b",
        "",
        "Pod lab/a",
        "  RDMA as before: yes (Equipped)",
        "  + spec.a: 1",
        "",
        "2 of 9 pods would get a different decision.",
    ]


def test_colors_repeat_the_text() -> None:
    """Losses are red, gains are green; on a terminal only."""
    notes = ("read",)
    comparison = Comparison(compared=9, changes=(change(EQUIPPED, LOST, *LEAVES[:3]),), notes=notes)
    lines = changes_text(comparison, color=True).splitlines()
    assert lines == [
        f"{BOLD}Pod lab/a{END}",
        f"  RDMA {GREEN}yes (Equipped){END} → {LOUD}no (NoTarget){END}",
        "  no fabric",
        "  fabric v100-ib → none",
        f"  {GREEN}+{END} spec.a: 1",
        f"  {RED}-{END} spec.b: 2",
        f'  {YELLOW}~{END} spec.c: "" → 4',
        "",
        f"{DIM}·{END} read",
        f"{BOLD}1 of 9 pods would get a different decision; 1 of them would lose RDMA.{END}",
    ]
    denied = text(change(EQUIPPED, DENIED, path="spec.template"), color=True)
    assert denied[:2] == [
        f"{BOLD}Pod lab/a{END}{DIM}  spec.template{END}",
        f"  RDMA {GREEN}yes (Equipped){END} → {LOUD}denied (Ambiguous){END}",
    ]


def test_twelve_values_are_listed() -> None:
    """A thirteenth is counted; a value of sixty characters is whole."""
    twelve = [Difference(f"spec.x{number}", None, "x" * 60) for number in range(12)]
    listed = text(change(LOST, LOST, *twelve))
    assert listed[-3] == f"  + spec.x11: {'x' * 60}"
    thirteen = text(change(LOST, LOST, *twelve, LEAVES[0]))
    assert thirteen[-4:-2] == [f"  + spec.x11: {'x' * 60}", "    and 1 more"]


def test_a_narrow_terminal_has_forty_columns() -> None:
    """A line of forty is whole; a longer one is broken."""
    fits, long = (Difference("spec.a", None, "x" * length) for length in (28, 29))
    assert f"  + spec.a: {'x' * 28}" in text(change(LOST, LOST, fits), width=7)
    assert f"    {'x' * 29}" in text(change(LOST, LOST, long), width=7)


def test_doubtful_rdma_is_not_counted_as_lost() -> None:
    """A verdict that becomes unsure is a doubt; a launcher is neither."""
    doubtful = EQUIPPED._replace(rdma="unsure", because="MemlockUnknown")
    launcher = EQUIPPED._replace(rdma="none", because="Launcher")
    changes = [change(EQUIPPED, after) for after in (LOST, doubtful, doubtful, launcher)]
    assert text(*changes, width=200)[-1] == (
        "4 of 9 pods would get a different decision; 1 of them would lose RDMA; RDMA would become "
        "unsure for 2 of them."
    )
