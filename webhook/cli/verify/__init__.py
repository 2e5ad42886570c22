"""`rdma-webhook verify`: grade the results of benchmarks, with a remedy for each problem.

Each module here is a subcommand of `verify`, except the modules that several of them share.
"""

from __future__ import annotations

from webhook.cli.parser import CommandParser, add_commands

#: Command → summary; the module of a command has its name.
_COMMANDS = {
    "judge": "grade the output of benchmarks or NCCL",
    "run": "measure the links between the nodes of a fabric, and grade the results",
    "nccl": "run nccl-tests on the nodes of a fabric, and grade the results",
    "clean": "delete the pods and jobs of earlier runs",
}
_EXAMPLES = """examples:
  rdma-webhook verify judge client.txt --rate 200
  rdma-webhook verify run --fabric v100-ib -n lab
  rdma-webhook verify clean -n lab
  rdma-webhook help verify judge               the options of a command
"""


def add_arguments(command: CommandParser) -> None:
    """Add the commands of `verify`."""
    command.epilog = _EXAMPLES
    add_commands(command, __name__, _COMMANDS)
