"""The cluster's container images, all built here, from files that the machine has or fetches."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.cluster import archives, buildah, pip_settings, progress, rootfs
from webhook import __version__

SOURCES = Path(__file__).parent / "dockerfiles"
ROOT = SOURCES.parents[2]


@dataclass(frozen=True, slots=True)
class Image:
    """A container image; different contents have different tags."""

    name: str
    """Its name in pods, after `ctr --namespace k8s.io images import ARCHIVE`."""
    archive: Path


@dataclass(frozen=True, slots=True, kw_only=True)
class _Recipe:
    """How to build an image."""

    name: str
    root: Path
    files: tuple[str, ...]
    """Files and folders below root: the build's context."""
    build: Callable[[buildah.Store, str, Path], None]
    """Builds an image of that name in the store, from a copy of the files."""
    bases: tuple[rootfs.Base, ...] = ()
    """The bases that its build uses."""
    version: str = ""
    """The beginning of the tag."""


def pause_image() -> Image:
    """Return the image of the container that holds a pod's namespaces."""

    def build(store: buildah.Store, name: str, context: Path) -> None:
        command = ["go", "build", "-trimpath", "-ldflags=-s -w", "-o", f"{context}/pause"]
        settings = {"CGO_ENABLED": "0", "GOFLAGS": "", "GOTOOLCHAIN": "local", "GOWORK": "off"}
        buildah.run([*command, f"{context}/pause.go"], env=settings)
        store.build(name, context)

    files = ("Dockerfile", "pause.go")
    return _image(_Recipe(name="pause", root=SOURCES / "pause", files=files, build=build))


@cache  # a run uses one state of the code, even if somebody edits it meanwhile
def webhook_image() -> Image:
    """Return the project's image, built from its Dockerfile and the code in this checkout."""

    def build(store: buildah.Store, name: str, context: Path) -> None:
        arguments = {
            "BASE": rootfs.image(rootfs.PYTHON, store),
            "BUILDER": rootfs.image(rootfs.DEBIAN, store),
            "VERSION": __version__,
            "BUILDPLATFORM": f"linux/{rootfs.ARCHITECTURE}",  # buildah 1.28 does not set it
        }
        with TemporaryDirectory(prefix="pip-") as folder:
            store.build(name, context, arguments, pip_settings.volumes(Path(folder)))

    return _image(
        _Recipe(
            name="rdma-webhook",
            root=ROOT,
            files=("Dockerfile", *_let_in((ROOT / ".dockerignore").read_text())),
            build=build,
            bases=(rootfs.DEBIAN, rootfs.PYTHON),
            version=__version__,
        )
    )


@cache
def previous_stand_in() -> Image:
    """Return a stand-in for the image of the previous version; its Dockerfile explains it."""
    current = webhook_image()

    def build(store: buildah.Store, name: str, context: Path) -> None:
        store.hold(current.name, current.archive)
        builder = rootfs.image(rootfs.DEBIAN, store)
        store.build(name, context, {"CURRENT": current.name, "BUILDER": builder})

    return _image(
        _Recipe(
            name="previous",
            root=SOURCES / "previous",
            files=("Dockerfile",),
            build=build,
            bases=(rootfs.DEBIAN,),
            version=current.name.rpartition(":")[2],
        )
    )


def mpi_image() -> Image:
    """Return an image for workloads: Open MPI, sshd, and `rank`, which prints what a rank sees.

    In /opt/stand-in it has an `all_reduce_perf` that needs no GPU, and measures nothing.
    """
    return _workload("mpi", "Dockerfile", "rank", "all_reduce_perf")


def perftest_image() -> Image:
    """Return the image that users build for `verify run`: perftest, and libibverbs' drivers."""
    return _on_base("perftest", ROOT / "images" / "perftest", "Dockerfile")


def perftest_stand_in() -> Image:
    """Return an image whose `ib_write_bw` needs no RDMA device, and measures nothing."""
    return _workload("stand-in", "Dockerfile", "ib_write_bw")


def _workload(name: str, *files: str) -> Image:
    """Return an image for test pods, made of the base and the files of a folder with its name."""
    return _on_base(name, SOURCES / name, *files)


def _on_base(name: str, root: Path, *files: str) -> Image:
    def build(store: buildah.Store, image: str, context: Path) -> None:
        store.build(image, context, {"BASE": rootfs.image(rootfs.DEBIAN, store)})

    bases = (rootfs.DEBIAN,)
    return _image(_Recipe(name=name, root=root, files=files, build=build, bases=bases))


def _let_in(ignored: str) -> list[str]:
    """Return the exceptions of a .dockerignore that otherwise excludes everything."""
    return [line.removeprefix("!") for line in ignored.split() if line.startswith("!")]


def _image(recipe: _Recipe) -> Image:
    """Return the image, from the cache if it is there."""
    with TemporaryDirectory(prefix="image-") as folder:
        context = Path(folder) / "context"
        archives.copy(recipe.root, recipe.files, context)
        keys = [base.key for base in recipe.bases] or [""]
        tag = "-".join(filter(None, [recipe.version, archives.key(context, *keys)]))
        archive = archives.folder() / f"{recipe.name}-{tag}.tar"
        image = Image(f"localhost/rdma-webhook/{recipe.name}:{tag}", archive)
        if not archives.used(archive):
            with archives.alone() as lock:
                _build(recipe, image, context, lock)
    return image


def _build(recipe: _Recipe, image: Image, context: Path, lock: int) -> None:
    if archives.used(image.archive):  # another process has just built it
        return
    for base in recipe.bases:
        rootfs.archive(base, lock)  # first, since its progress has its own line
    with progress.step(f"building the {recipe.name} image"), buildah.opened(lock) as store:
        recipe.build(store, image.name, context)
        store.save(image.name, image.archive)
    archives.prune(recipe.name)
