"""`python -m tests.cluster`: a cluster that runs until it is taken down.

up prints the line that makes kubectl find it. DIRECTORY separates clusters: by default it is
the folder of the user's only cluster, `$XDG_STATE_HOME/rdma-webhook/cluster`.
"""

from __future__ import annotations

import argparse
import shutil
import sys
from pathlib import Path

from tests.cluster import lifetime, progress, state
from tests.cluster.binaries import binary, provide
from tests.cluster.cluster import ERRORS, Cluster, attach, up
from tests.cluster.install import equip, install
from tests.cluster.missing import missing
from tests.cluster.processes import ClusterError
from tests.cluster.versions import DEFAULT_MINOR, KUBERNETES

#: What to try once the webhook is installed.
TRY = """
The webhook runs. The node real-0 says that it has V100s, {fake} seems to have A100s. No images are
pulled: pods of this example are made and patched, but do not start.
  {kubectl} create --filename manifests/examples/trainer.yaml
  {kubectl} get pods --namespace lab --output=yaml
make cluster again installs what you have changed; make cluster-down ends it.
"""
_RUNS = "the cluster goes on running, and make cluster-down ends it"


def main() -> int:
    """Run the command line's verb; return the exit status."""
    arguments = _parser().parse_args()
    try:
        status: int = arguments.run(arguments)
    except ERRORS as error:
        progress.say(str(error))
        return 1
    except KeyboardInterrupt:
        progress.say(f"Interrupted; {arguments.interrupted}.")
        return 130
    return status


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.cluster", description=__doc__)
    verbs = parser.add_subparsers(required=True, metavar="VERB")
    directory = argparse.ArgumentParser(add_help=False)
    directory.add_argument("directory", nargs="?", type=_absolute, default=state.home() / "cluster")
    starting = verbs.add_parser("up", parents=[directory], help="start it")
    starting.add_argument("--kubernetes", choices=list(KUBERNETES), default=DEFAULT_MINOR)
    starting.set_defaults(run=_up, interrupted="what was being started is gone")
    ending = verbs.add_parser("down", parents=[directory], help="end it")
    ending.set_defaults(run=_down, interrupted="call it again: something may be left")
    installing = verbs.add_parser(
        "install", parents=[directory], help="put this working tree's webhook into it"
    )
    installing.set_defaults(run=_install, interrupted=_RUNS)
    loading = verbs.add_parser("load", help="give its node the images of an archive")
    loading.add_argument("archive", type=Path)
    loading.add_argument("directory", nargs="?", type=_absolute, default=state.home() / "cluster")
    loading.set_defaults(run=_load, interrupted=_RUNS)
    building = verbs.add_parser("build", help="print where programs are; build the missing ones")
    building.add_argument("programs", nargs="+", metavar="PROGRAM")
    building.set_defaults(run=_build, interrupted="what was built stays in the cache")
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
        raise ClusterError(f"Kubernetes {cluster.minor} is running there: make cluster-down first.")
    sys.stdout.write(f"export KUBECONFIG={cluster.kubeconfig}\n")
    return 0


def _down(arguments: argparse.Namespace) -> int:
    record = state.read(arguments.directory)
    if record is None:
        progress.say("No cluster is running, so there is nothing to do.")
        return 0
    outcome = "is gone" if record.alive() else "had died; what it left is gone too"
    lifetime.remove(arguments.directory)
    progress.say(f"The cluster of Kubernetes {record.minor} {outcome}.")
    return 0


def _install(arguments: argparse.Namespace) -> int:
    cluster = _running(arguments.directory)
    fake = equip(cluster)
    install(cluster)
    kubectl = "kubectl" if shutil.which("kubectl") else binary("kubectl", cluster.minor)
    sys.stderr.write(TRY.format(fake=fake, kubectl=kubectl))
    return 0


def _load(arguments: argparse.Namespace) -> int:
    _running(arguments.directory).load(arguments.archive)
    return 0


def _build(arguments: argparse.Namespace) -> int:
    paths = provide(arguments.programs)
    sys.stdout.writelines(f"{path}\n" for path in paths.values())
    return 0


def _running(directory: Path) -> Cluster:
    cluster = attach(directory)
    if cluster is None:
        raise ClusterError(f"{directory}: no cluster is running there")
    return cluster


if __name__ == "__main__":
    sys.exit(main())
