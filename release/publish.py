"""Push the image and the chart of a release to a registry, and sign both.

    python -m release.publish FOLDER REPOSITORY [-- OPTION ...]

FOLDER is what `make release` wrote. The image becomes REPOSITORY:VERSION; the chart,
charts/rdma-webhook:VERSION beside that repository. The options are those of `cosign sign`: without
any, it signs with the identity of the workflow that runs it. First log in with `crane auth login`.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tarfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.cluster.binaries import binary


def publish(
    folder: Path, repository: str, sign_options: Sequence[str], helm_options: Sequence[str] = ()
) -> list[str]:
    """Push and sign; return the references that were signed, each with its digest."""
    (chart,) = folder.glob("rdma-webhook-*.tgz")
    version = chart.stem.removeprefix("rdma-webhook-")
    references = [
        _push_image(folder, f"{repository}:{version}"),
        _push_chart(chart, f"{repository.rpartition('/')[0]}/charts", version, *helm_options),
    ]
    for reference in references:
        _run("cosign", "sign", "--yes", *sign_options, reference)
    return references


def _push_image(folder: Path, name: str) -> str:
    """Push the image of each platform, and an index of them under the name."""
    manifests = list(_push_platforms(folder, name))
    options = [option for reference in manifests for option in ("--manifest", reference)]
    return _run("crane", "index", "append", *options, "--tag", name).split()[-1]


def _push_platforms(folder: Path, name: str) -> Iterator[str]:
    for archive in sorted(folder.glob("*.oci.tar")):
        with TemporaryDirectory(prefix="layout-") as layout:
            with tarfile.open(archive) as files:
                files.extractall(layout, filter="data")
            architecture = archive.name.removesuffix(".oci.tar").rpartition("-")[2]
            yield _run("crane", "push", layout, f"{name}-{architecture}").split()[-1]


def _push_chart(chart: Path, registry: str, version: str, *helm_options: str) -> str:
    """Push the chart; Helm appends its name to the registry's path."""
    _run("helm-4", "push", str(chart), f"oci://{registry}", *helm_options)
    name = f"{registry}/rdma-webhook"
    return f"{name}@{_run('crane', 'digest', f'{name}:{version}').strip()}"


def _run(program: str, *arguments: str) -> str:
    command = [str(binary(program)), *arguments]
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout


def main() -> int:
    """Publish; return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m release.publish", description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("repository")
    parser.add_argument("sign_options", nargs="*", metavar="OPTION")
    options = parser.parse_args()
    print(*publish(options.folder, options.repository, options.sign_options), sep="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
