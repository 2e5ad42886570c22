"""`rdma-webhook verify judge`: grade the results of benchmarks, with a remedy for each problem."""

from __future__ import annotations

import argparse
from pathlib import Path

from webhook.cli.config_files import read_configuration
from webhook.cli.inputs import input_name, read_input, shown_name
from webhook.cli.options import CONFIG_VARIABLE, MISSING_FILE, config_name
from webhook.cli.output import print_message
from webhook.cli.verify.options import (
    add_machine_option,
    add_result_options,
    find_fabric,
    given_rate,
    port_rate,
)
from webhook.cli.verify.output import EXIT_CODES, NOT_COMPLETED, exit_code, print_evaluation
from webhook.cli.verify.run import check_page, print_report, write_page
from webhook.diagnose.verify.evaluate import BenchmarkFile, evaluate, read_benchmark_files
from webhook.diagnose.verify.file_pairs import PairOutput, pair_outputs, report_on_pairs
from webhook.diagnose.verify.published import MACHINES
from webhook.diagnose.verify.results import PortRate
from webhook.errors import DocumentError
from webhook.model.fabric import Fabric
from webhook.model.names import counted

#: The largest number of bytes of a file.
_MAX_BYTES = 64 << 20
_PAIR_ADVICE = "name it CLIENT_SERVER.txt, or write `# CLIENT -> SERVER` above each output"
_EXAMPLES = f"""examples:
  rdma-webhook verify judge client.txt --rate 200
  rdma-webhook verify judge -c fabrics.yaml --fabric v100-ib node-*.txt
  kubectl logs perftest-client | rdma-webhook verify judge --rate 100 -
  rdma-webhook verify judge -o json train.log | jq .level
  rdma-webhook verify judge --matrix --rate 400 pairs/*.txt

{EXIT_CODES}
"""


def add_arguments(command: argparse.ArgumentParser) -> None:
    """Add the arguments of `verify judge`."""
    command.epilog = _EXAMPLES
    add = command.add_argument
    add(
        "files",
        nargs="*",
        type=input_name,
        metavar="FILE",
        help="output of benchmarks, NCCL log, or - for standard input",
    )
    add("--rate", type=given_rate, metavar="GBPS", help="rate of the port, as ibstat shows it")
    add(
        "-c",
        "--config",
        type=input_name,
        metavar="FABRICS",
        help=f"fabrics file that has the fabric of --fabric (default: ${CONFIG_VARIABLE})",
    )
    add("--fabric", metavar="NAME", help="fabric whose rateGbps and hcas are expected")
    add_machine_option(command, MACHINES)
    add(
        "--matrix",
        action="store_true",
        help="show a matrix of nodes, as verify run does; each file has a pair in its name "
        "(CLIENT_SERVER.txt), or lines CLIENT -> SERVER above the outputs",
    )
    add("--html", type=Path, metavar="FILE", help="with --matrix: also write a page with heat maps")
    add_result_options(command)


def run(arguments: argparse.Namespace) -> int:
    """Judge the files, and return the exit code; report unreadable files, and show the rest."""
    names = list(dict.fromkeys(arguments.files))
    if not names:
        arguments.command.error(MISSING_FILE)
    fabric = _fabric(arguments)
    rate = port_rate(arguments.rate, fabric)
    if arguments.matrix:
        return _judge_pairs(arguments, names, rate, fabric.name if fabric else "")
    if arguments.html:
        raise DocumentError("--html requires --matrix")
    read = [parts for name in names if (parts := _files(name))]
    files = [file for parts in read for file in parts]
    evaluation = evaluate(files, rate, fabric.hcas if fabric else (), arguments.machine)
    if not evaluation.results:
        _report_unrecognized(read)
        return NOT_COMPLETED
    print_evaluation(evaluation, arguments.output)
    if len(read) < len(names):
        return NOT_COMPLETED
    return exit_code(evaluation.worst.level, strict=arguments.strict)


def _judge_pairs(
    arguments: argparse.Namespace, names: list[str], rate: PortRate | None, fabric: str
) -> int:
    """Judge the outputs of pairs, show them as a matrix, and return the exit code."""
    if arguments.html is not None:
        check_page(arguments.html)
    outputs: list[PairOutput] = []
    complete = True
    for name in names:
        text = _text(name)
        of_file = pair_outputs(shown_name(name), text) if text is not None else []
        if text is not None and not of_file:
            print_message("error", f"{shown_name(name)}: has no pair of nodes; {_PAIR_ADVICE}")
        complete = complete and bool(of_file)
        outputs += of_file
    if not outputs:
        return NOT_COMPLETED
    report = report_on_pairs(outputs, rate, fabric)
    print_report(report, arguments.output)
    if arguments.html is not None:
        write_page(report, arguments.html, "")
    if not complete:
        return NOT_COMPLETED
    return exit_code(report.evaluation.worst.level, strict=arguments.strict)


def _fabric(arguments: argparse.Namespace) -> Fabric | None:
    """Return the named fabric; raise ConfigError if it does not exist."""
    if not arguments.fabric:
        if arguments.config:
            raise DocumentError("-c FABRICS requires --fabric NAME, the measured fabric")
        return None
    path = config_name(arguments.config)
    if path is None:
        raise DocumentError(
            f"--fabric requires a fabrics file; pass -c FABRICS or set ${CONFIG_VARIABLE}"
        )
    return find_fabric(arguments.fabric, read_configuration(path), shown_name(path))


def _files(name: str) -> list[BenchmarkFile] | None:
    """Read a file, node by node; print an error and return None if it is unreadable."""
    text = _text(name)
    return None if text is None else read_benchmark_files(shown_name(name), text)


def _text(name: str) -> str | None:
    """Read a file; print an error and return None if it is unreadable."""
    shown = shown_name(name)
    try:
        data = read_input(name, _MAX_BYTES)
    except DocumentError as error:
        print_message("error", str(error))
        return None
    if len(data) > _MAX_BYTES:
        print_message(
            "error",
            f"{shown}: is larger than {_MAX_BYTES >> 20} MiB; pass only the benchmark's part of it",
        )
        return None
    return data.decode("utf-8", "replace")


def _unrecognized(line_count: int) -> str:
    """Return the clause on a file without recognized lines."""
    if line_count > 1:
        return f"none of its {counted(line_count, 'line')} was recognized"
    return "its only line was not recognized" if line_count else "is empty"


def _report_unrecognized(files: list[list[BenchmarkFile]]) -> None:
    """Print an error for each file; its parts of several nodes are one file."""
    for parts in files:
        count = sum(part.line_count for part in parts)
        print_message(
            "error",
            f"{parts[0].name}: {_unrecognized(count)}; pass the output of "
            "perftest (ib_write_bw), nccl-tests, ucx_perftest or rping, or an NCCL log",
        )
