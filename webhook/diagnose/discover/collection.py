"""What collects the output of tools on nodes: a script, and a DaemonSet that runs it on each node.

The script is POSIX sh, tested in dash, bash and busybox. Its output has the headers that
`webhook.diagnose.tools.transcripts` knows: the format, the machine, and each command with its exit status.
"""

from __future__ import annotations

import json
from importlib.resources import files
from textwrap import indent

_PACKAGE = files(__package__)


def collect_script() -> str:
    """Return the script, which is run on a machine by sh and prints to standard output."""
    return _PACKAGE.joinpath("collect.sh").read_text(encoding="utf-8")


def daemonset(image: str, namespace: str) -> str:
    """Return the manifest that runs the script once on each node, and prints to its pods' logs.

    The image needs sh, grep and cat; with ibstat, rdma and other tools in it, the pods show more.
    """
    template = _PACKAGE.joinpath("daemonset.yaml").read_text(encoding="utf-8")
    return (
        template.replace("@SCRIPT@", indent(collect_script().rstrip(), "    "))
        .replace("@NAMESPACE@", namespace)
        .replace("@IMAGE@", json.dumps(image))
    )
