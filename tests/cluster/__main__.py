"""`python -m tests.cluster`: a cluster that stands until it is taken down.

up prints the line that makes kubectl find it. DIRECTORY keeps clusters apart: without one it is
the user's one cluster, `$XDG_STATE_HOME/rdma-webhook/cluster`.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from tests.cluster import lifetime, progress, state
from tests.cluster.binaries import BuildError
from tests.cluster.cluster import attach, up
from tests.cluster.missing import missing
from tests.cluster.namespaces import NamespaceError
from tests.cluster.processes import ClusterError
from tests.cluster.versions import DEFAULT_MINOR, KUBERNETES


def main() -> int:
    """Do what the command line says; return the exit status."""
    arguments = _parser().parse_args()
    try:
        status: int = arguments.run(arguments)
    except (BuildError, ClusterError, NamespaceError, FileExistsError) as error:
        progress.say(str(error))
        return 1
    except KeyboardInterrupt:
        progress.say("Interrupted; what was being started is gone.")
        return 130
    return status


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.cluster", description=__doc__)
    verbs = parser.add_subparsers(required=True, metavar="VERB")
    where = argparse.ArgumentParser(add_help=False)
    where.add_argument("directory", nargs="?", type=_absolute, default=state.home() / "cluster")
    starting = verbs.add_parser("up", parents=[where], help="start it")
    starting.add_argument("--kubernetes", choices=list(KUBERNETES), default=DEFAULT_MINOR)
    starting.set_defaults(run=_up)
    verbs.add_parser("down", parents=[where], help="end it").set_defaults(run=_down)
    loading = verbs.add_parser("load", help="give its node the images of an archive")
    loading.add_argument("archive", type=Path)
    loading.add_argument("directory", nargs="?", type=_absolute, default=state.home() / "cluster")
    loading.set_defaults(run=_load)
    return parser


def _absolute(path: str) -> Path:
    return Path(path).absolute()


def _up(arguments: argparse.Namespace) -> int:
    line = missing()
    if line is not None:
        raise ClusterError(line)
    cluster = attach(arguments.directory)
    if cluster is None:
        cluster = up(arguments.kubernetes, arguments.directory)
    elif cluster.minor == arguments.kubernetes:
        progress.say(f"It is running already: Kubernetes {cluster.minor}.")
    else:
        raise ClusterError(f"Kubernetes {cluster.minor} is running there: take it down first.")
    sys.stdout.write(f"export KUBECONFIG={cluster.kubeconfig}\n")
    return 0


def _down(arguments: argparse.Namespace) -> int:
    found = state.read(arguments.directory)
    if found is None:
        progress.say("No cluster is running, so there is nothing to do.")
        return 0
    said = "is gone" if found.alive() else "had died; what it left is gone too"
    lifetime.remove(arguments.directory)
    progress.say(f"The cluster of Kubernetes {found.minor} {said}.")
    return 0


def _load(arguments: argparse.Namespace) -> int:
    cluster = attach(arguments.directory)
    if cluster is None:
        raise ClusterError(f"{arguments.directory}: no cluster is running there")
    cluster.load(arguments.archive)
    return 0


if __name__ == "__main__":
    sys.exit(main())
