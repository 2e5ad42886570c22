"""The container images of the cluster, each built here, from what this machine has or fetches."""

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
    """A container image; its tag is another one for other contents."""

    name: str
    """What a pod calls it, after `ctr --namespace k8s.io images import ARCHIVE`."""
    archive: Path


@dataclass(frozen=True, slots=True, kw_only=True)
class _Recipe:
    """What an image is made of."""

    name: str
    root: Path
    files: tuple[str, ...]
    """Files and folders below root: the build's context."""
    build: Callable[[buildah.Store, str, Path], None]
    """Builds an image of that name in the store from a copy of the files."""
    on_base: bool = False
    """Whether it stands on `rootfs.image`."""
    version: str = ""
    """Begins the tag."""


def pause_image() -> Image:
    """Return the image of the container that holds a pod's namespaces."""

    def build(store: buildah.Store, name: str, context: Path) -> None:
        command = ["go", "build", "-trimpath", "-ldflags=-s -w", "-o", f"{context}/pause"]
        settings = {"CGO_ENABLED": "0", "GOFLAGS": "", "GOTOOLCHAIN": "local", "GOWORK": "off"}
        buildah.run([*command, f"{context}/pause.go"], env=settings)
        store.build(name, context)

    files = ("Dockerfile", "pause.go")
    return _image(_Recipe(name="pause", root=SOURCES / "pause", files=files, build=build))


@cache  # a run is of one state of the code, also where somebody goes on editing
def webhook_image() -> Image:
    """Return the project's own image, built from its Dockerfile and the code as it lies here."""

    def build(store: buildah.Store, name: str, context: Path) -> None:
        arguments = {"BASE": rootfs.image(store), "VERSION": __version__}
        with TemporaryDirectory(prefix="pip-") as folder:
            store.build(name, context, arguments, pip_settings.volumes(Path(folder)))

    return _image(
        _Recipe(
            name="rdma-webhook",
            root=ROOT,
            files=("Dockerfile", *_let_in((ROOT / ".dockerignore").read_text())),
            build=build,
            on_base=True,
            version=__version__,
        )
    )


def mpi_image() -> Image:
    """Return an image for workloads: Open MPI, sshd, and `rank`, which prints what a rank sees."""

    def build(store: buildah.Store, name: str, context: Path) -> None:
        store.build(name, context, {"BASE": rootfs.image(store)})

    return _image(
        _Recipe(
            name="mpi",
            root=SOURCES / "mpi",
            files=("Dockerfile", "rank"),
            build=build,
            on_base=True,
        )
    )


def _let_in(ignored: str) -> list[str]:
    """Return what a .dockerignore that shuts everything out makes an exception of."""
    return [line.removeprefix("!") for line in ignored.split() if line.startswith("!")]


def _image(recipe: _Recipe) -> Image:
    """Return the image, from the cache if it is there."""
    with TemporaryDirectory(prefix="image-") as folder:
        context = Path(folder) / "context"
        archives.copy(recipe.root, recipe.files, context)
        base = rootfs.key() if recipe.on_base else ""
        tag = "-".join(filter(None, [recipe.version, archives.key(context, base)]))
        archive = archives.folder() / f"{recipe.name}-{tag}.tar"
        image = Image(f"localhost/rdma-webhook/{recipe.name}:{tag}", archive)
        if not archives.used(archive):
            with archives.alone() as lock:
                _build(recipe, image, context, lock)
    return image


def _build(recipe: _Recipe, image: Image, context: Path, lock: int) -> None:
    if archives.used(image.archive):  # somebody else has just built it
        return
    if recipe.on_base:
        rootfs.archive(lock)  # first, for its progress is shown on a line of its own
    with progress.step(f"building the {recipe.name} image"), buildah.opened(lock) as store:
        recipe.build(store, image.name, context)
        store.save(image.name, image.archive)
    archives.prune(recipe.name)
