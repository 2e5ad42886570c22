"""The command behind `make release`."""

from __future__ import annotations

import argparse
import hashlib
import shutil
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from release import artifacts, checkout, images, notes, sboms
from release.artifacts import Source

ROOT = Path(__file__).parents[1]


def main() -> int:
    """Make a release; return the exit code: 0, or 1 if the checkout is not fit for it."""
    options = _options()
    if problems := checkout.problems(ROOT, options.version):
        print(f"{options.version} cannot be released:", *problems, sep="\n- ", file=sys.stderr)
        return 1
    shutil.rmtree(options.output, ignore_errors=True)
    options.output.mkdir(parents=True)
    with TemporaryDirectory(prefix="release-") as folder:
        checkout.export(ROOT, Path(folder))
        source = Source(
            root=Path(folder),
            version=options.version,
            commit=checkout.commit(ROOT),
            time=checkout.commit_time(ROOT),
        )
        _build(source, options)
    _write_checksums(options.output)
    return 0


def _build(source: Source, options: argparse.Namespace) -> None:
    output = options.output
    artifacts.wheel(source, output)
    artifacts.chart(source, output)
    artifacts.manifests(source, options.image, output)
    artifacts.alert_rules(source, output)
    sboms.of_dependencies(source, options.cyclonedx, output)
    built = [images.build(source, platform, ROOT, output) for platform in options.platforms]
    for image in built:
        sboms.of_image(source, image.archive)
    notes.write(source, built, output)


def _write_checksums(folder: Path) -> None:
    """Write SHA256SUMS, for `sha256sum --check`, and print it."""
    files = sorted(folder.iterdir())
    lines = [f"{hashlib.sha256(file.read_bytes()).hexdigest()}  {file.name}\n" for file in files]
    (folder / "SHA256SUMS").write_text("".join(lines))
    print(*lines, sep="", end="")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m release", description=main.__doc__)
    parser.add_argument("version", help="such as 0.1.0, as in webhook/__init__.py")
    parser.add_argument("--output", type=Path, default=ROOT / "dist", help="a folder to replace")
    parser.add_argument("--image", default="rdma-webhook", help="repository, for install.yaml")
    parser.add_argument("--platforms", nargs="*", default=["linux/amd64"], metavar="PLATFORM")
    parser.add_argument("--cyclonedx", type=Path, required=True, help="the command cyclonedx-py")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
