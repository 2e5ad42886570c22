"""Tools that failed on a node: not installed, stopped before the end, or without a driver."""

from __future__ import annotations

from collections.abc import Iterator

from webhook.diagnose.discover.site import MergedNode
from webhook.model.finding import Code, Finding, Location

TOOL_FAILED = Code(
    "ToolFailed",
    "A tool did not run on a node, or stopped before it had finished.",
    "Correct the cause that the tool's message names, and collect the tool's output again.",
)
_INSTALL = (
    "Install the tools on the node (infiniband-diags, libibverbs-utils or ibverbs-utils), or run "
    "on it the script that `rdma-webhook discover script` prints, which needs none of them."
)
_RELOAD = (
    "Load the module ib_uverbs on the node, and run the tool there, not in a container without the "
    "devices."
)
#: Tools that show no RDMA device, so that their absence explains none.
_OF_GPUS = frozenset({"nvidia-smi", "amd-smi", "rocm-smi"})


def tool_failures(node: MergedNode) -> Iterator[Finding]:
    """Yield what failed on a node, unless other tools show what the tool would have shown."""
    has_device = any(port.device for port in node.ports)
    location = Location(nodes=(node.name,))
    messages = {(failure.kind, failure.origin.tool, failure.message) for failure in node.failures}
    for kind, tool, message in sorted(messages):
        if kind == "stopped":
            text = f"{tool} stopped before its end: {message}"
            yield TOOL_FAILED.finding("error", text, location=location)
        elif kind == "no driver":
            text = f"{tool} shows no GPU: {message}"
            yield TOOL_FAILED.finding("warning", text, location=location)
        elif kind == "no device" and has_device:
            text = f"{tool} finds no RDMA device, but other tools show one: {message}"
            yield TOOL_FAILED.finding("warning", text, _RELOAD, location)
    missing = sorted({tool for kind, tool, _ in messages if kind == "not installed"} - _OF_GPUS)
    if missing and not has_device:
        verb = "is" if len(missing) == 1 else "are"
        text = f"{', '.join(missing)} {verb} not installed"
        yield TOOL_FAILED.finding("error", text, _INSTALL, location)


def no_device_messages(node: MergedNode) -> list[str]:
    """Return what tools print that find no RDMA device on a node."""
    return sorted(
        {
            f"{failure.origin.tool}: {failure.message}"
            for failure in node.failures
            if failure.kind == "no device"
        }
    )
