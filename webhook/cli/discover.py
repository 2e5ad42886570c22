"""`rdma-webhook discover`: derive the fabrics file from the output of tools on nodes."""

from __future__ import annotations

import argparse
import json
import secrets
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from socket import gethostname

from webhook.cli.config_files import read_text
from webhook.cli.discover_options import FROM_API, add_discover_options
from webhook.cli.inputs import shown_name
from webhook.cli.node_files import texts_of_node, texts_of_nodes
from webhook.cli.options import cluster_access
from webhook.cli.output import color, print_message, width, write, write_json
from webhook.config.files import parse_yaml
from webhook.diagnose.discover.cluster import (
    OBJECTS_COMMAND,
    Item,
    cluster_findings,
    items_of,
    kube_nodes,
)
from webhook.diagnose.discover.cut_outputs import cut_findings
from webhook.diagnose.discover.discovery import Discovery, discover_site
from webhook.diagnose.discover.earlier_output import earlier_nodes
from webhook.diagnose.discover.inputs import (
    NodeText,
    collect_script,
    daemonset,
    read_texts,
    run_here,
)
from webhook.diagnose.discover.node_form import NodeForm
from webhook.diagnose.discover.output import discover_form, discover_text
from webhook.diagnose.discover.page import site_page
from webhook.diagnose.discover.plugin.files import plugin_files
from webhook.diagnose.discover.site import DiscoverOptions
from webhook.diagnose.discover.svg import picture
from webhook.diagnose.discover.unanswered import unanswered_findings
from webhook.diagnose.discover.unread_lines import unread_findings
from webhook.errors import DocumentError
from webhook.text.escape import visible_lines
from webhook.text.yaml.tree import TextLimits

_FINE, _TO_FIX, _UNREADABLE = 0, 1, 2
#: 10,000 nodes with their images, as kubectl prints them.
_LIMITS = TextLimits(size=256 << 20, values=20_000_000, depth=100)
#: Words in place of files.
_COLLECTORS = (["script"], ["daemonset"])


def add_arguments(command: argparse.ArgumentParser) -> None:
    """Add the arguments of `discover`."""
    add_discover_options(command)


def run(arguments: argparse.Namespace) -> int:
    """Discover, print, and return the exit code."""
    if arguments.files in _COLLECTORS:
        write(_collector(arguments))
        return _FINE
    unreadable_texts: list[str] = []
    inputs = read_texts(_texts(arguments, unreadable_texts))
    problems = (*unreadable_texts, *inputs.problems)
    for problem in problems:
        print_message("error", problem)
    earlier = _earlier(arguments)
    items = list(_items(arguments))
    cluster_nodes = kube_nodes(items)
    if not inputs.nodes and not cluster_nodes and not inputs.unanswered:
        raise DocumentError(_no_input(problems))
    options = DiscoverOptions(
        arguments.mode,
        tuple(arguments.networks),
        arguments.namespace,
        ofed=arguments.ofed,
        expected_nodes=arguments.expect_nodes,
        expected_hcas=arguments.expect_hcas,
        network_prefix=arguments.network_prefix,
    )
    findings = [
        *unanswered_findings(inputs.unanswered),
        *cut_findings(inputs.cuts),
        *unread_findings(inputs.unread, inputs.nodes),
        *cluster_findings(items),
    ]
    discovery = discover_site(inputs.nodes, cluster_nodes, options, findings, earlier)
    _write_files(arguments, discovery, options)
    _print(discovery, arguments.output)
    if problems:
        return _UNREADABLE
    return _TO_FIX if discovery.needs_a_fix else _FINE


def _collector(arguments: argparse.Namespace) -> str:
    """Return the script or DaemonSet that collects the output of tools on nodes."""
    if arguments.files == ["script"]:
        return collect_script()
    return daemonset(arguments.image, arguments.namespace, secrets.token_hex(4))


def _texts(arguments: argparse.Namespace, problems: list[str]) -> Iterator[NodeText]:
    """Yield all texts; an unreadable input becomes a problem, and the others are still read."""
    if arguments.run:
        yield NodeText("this node", gethostname(), run_here())
    named = [*dict.fromkeys(arguments.files), *dict.fromkeys(arguments.dir)]
    file_count = len(dict.fromkeys(arguments.files))
    for index, name in enumerate(named):
        try:
            yield from texts_of_node(name) if index < file_count else texts_of_nodes(name)
        except DocumentError as error:
            problems.append(str(error))


def _no_input(problems: tuple[str, ...]) -> str:
    lead = "no usable input" if problems else "missing input; pass files, --dir or --run"
    return (
        f"{lead}. `rdma-webhook discover script` prints a script that collects the input on a "
        "node; at a minimum, run these commands there: hostname; ibstat; ibdev2netdev; "
        "lspci -Dnn; nvidia-smi -L; nvidia-smi topo -m; ip -br a"
    )


def _earlier(arguments: argparse.Namespace) -> list[NodeForm] | None:
    """Return the nodes of the earlier output that --against names; None without the option."""
    if arguments.against is None:
        return None
    text = read_text(arguments.against, _LIMITS.size)
    return earlier_nodes(text, shown_name(arguments.against))


def _items(arguments: argparse.Namespace) -> Iterable[Item]:
    """Return the objects of the cluster, from a file or from the API server."""
    if arguments.nodes is None:
        return ()
    if arguments.nodes == FROM_API:
        return _from_api(arguments)
    return _from_file(arguments.nodes)


def _from_file(given: str) -> list[Item]:
    name = shown_name(given)
    text = read_text(given, _LIMITS.size)
    items = [item for value in _documents(text, name) for item in items_of(value)]
    if not any(item.get("kind") == "Node" for item in items):
        raise DocumentError(f"{name}: contains no Node; pass the output of {OBJECTS_COMMAND}")
    return items


def _documents(text: str, name: str) -> list[object]:
    if text.lstrip().startswith("{"):
        try:
            return [json.loads(text)]
        except (ValueError, RecursionError):  # YAML that begins with a brace, or several documents
            pass
    return [document.data for document in parse_yaml(text, name, _LIMITS)]


def _from_api(arguments: argparse.Namespace) -> Sequence[Item]:
    from webhook.diagnose.discover.cluster import read_cluster  # noqa: PLC0415 -- slow to import
    from webhook.kube.client import Client  # noqa: PLC0415
    from webhook.kube.reads import HttpReads  # noqa: PLC0415

    live = read_cluster(HttpReads(Client(*cluster_access(arguments))))
    for note in live.unread_messages:
        print_message("note", note)
    return live.items


def _write_files(
    arguments: argparse.Namespace, discovery: Discovery, options: DiscoverOptions
) -> None:
    """Write the files that the options name."""
    if arguments.plugin is not None:
        _write_plugin(arguments.plugin, discovery, options)
    if arguments.svg is not None:
        _write_over(arguments.svg, picture(discovery))
    if arguments.html is not None:
        _write_over(arguments.html, site_page(discovery, datetime.now(UTC)))


def _write_over(path: Path, text: str) -> None:
    """Write a file that an option names; overwrite an existing one."""
    try:
        path.write_text(text, encoding="utf-8")
    except (OSError, ValueError) as error:
        raise _write_error(path, error) from None
    print_message("note", f"wrote {path}")


def _write_error(path: Path, error: OSError | ValueError) -> DocumentError:
    return DocumentError(f"{path}: cannot be written: {getattr(error, 'strerror', None) or error}")


def _write_plugin(folder: Path, discovery: Discovery, options: DiscoverOptions) -> None:
    """Write the device plugins' files; raise DocumentError for an existing file that differs."""
    if folder.is_file():
        raise DocumentError(f"{folder}: is a file; --plugin requires a directory")
    plugin = plugin_files(discovery.accepted_fabrics, options)
    for note in plugin.notes:
        print_message("warning", note)
    if not plugin.files:
        cause = "needs a device plugin" if discovery.fabrics else "was found"
        print_message("note", f"{folder}: nothing written, since no fabric {cause}")
    for file in plugin.files:
        _write_new(folder / file.name, visible_lines(file.text))


def _write_new(path: Path, text: str) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.exists() and path.read_text(encoding="utf-8") != text:
            raise DocumentError(f"{path}: exists and differs; move it, or pass another directory")
        path.write_text(text, encoding="utf-8")
    except (OSError, ValueError) as error:
        raise _write_error(path, error) from None
    print_message("note", f"wrote {path}")


def _print(discovery: Discovery, output_format: str) -> None:
    if output_format == "json":
        write_json(discover_form(discovery))
    elif output_format == "yaml":
        write(visible_lines(discovery.text))
    else:
        write(discover_text(discovery, width=width(), color=color()))
