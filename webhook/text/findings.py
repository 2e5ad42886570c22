"""Findings as lines of text and as JSON; `webhook.text.terminal` writes them for people."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from typing_extensions import TypedDict

from webhook.model.finding import LEVELS, Finding, Level, Location
from webhook.model.names import counted, shortened_list


def text_with_nodes(finding: Finding, *, every: bool = False) -> str:
    """Return the text, and in parentheses the first affected nodes, or every one of them."""
    nodes = finding.location.nodes
    if not nodes:
        return finding.text
    return f"{finding.text} ({', '.join(nodes) if every else shortened_list(nodes)})"


def file_position(location: Location) -> str:
    """Return `FILE:LINE`, or `FILE:LINE:COLUMN`, as far as they are known."""
    return ":".join(str(part) for part in (location.file, location.line, location.column) if part)


class LocationForm(TypedDict, total=False):
    """The location of a finding; a part that does not apply is left out."""

    file: str
    """As given on the command line, "<stdin>" for standard input."""
    line: int
    """From 1."""
    column: int
    """From 1; only for text that is not YAML."""
    path: str
    """The field, such as `fabrics[1].hcas[0]`."""
    nodes: list[str]
    """The affected nodes."""
    device: str
    """The RDMA device, such as mlx5_0."""


class FindingForm(TypedDict):
    """A finding. Keys and codes may be added, but are never renamed."""

    level: Level
    """ok, info, warning, unsure (cannot be determined) or error, in ascending order."""
    code: str
    """A stable word; `rdma-webhook why CODE` explains it."""
    text: str
    """One or two sentences."""
    remedy: str
    """What to do; empty if no action is needed."""
    location: LocationForm


def finding_form(finding: Finding) -> FindingForm:
    """Return a finding as plain JSON values."""
    return FindingForm(
        level=finding.level,
        code=finding.code,
        text=finding.text,
        remedy=finding.remedy,
        location=_location_form(finding.location),
    )


def _location_form(location: Location) -> LocationForm:
    form = LocationForm()
    if location.file:
        form["file"] = location.file
    if location.line is not None:
        form["line"] = location.line
    if location.column is not None:
        form["column"] = location.column
    if location.path:
        form["path"] = location.path
    if location.nodes:
        form["nodes"] = list(location.nodes)
    if location.device:
        form["device"] = location.device
    return form


def tally(levels: Iterable[Level], order: Sequence[Level] = LEVELS) -> str:
    """Count findings by level: "3 ok, 2 errors"; levels without a finding are left out."""
    counts = Counter(levels)
    return ", ".join(
        counted(counts[level], level)
        if level in ("warning", "error")
        else f"{counts[level]} {level}"
        for level in order
        if counts[level]
    )
