"""The cluster's programs: the developer's, from the cache, or built from `modules/` with Go."""

from __future__ import annotations

import fcntl
import hashlib
import os
import re
import shutil
import subprocess
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path

from tests.cluster import progress
from tests.cluster.versions import DEFAULT_MINOR, ETCD, MODULES, Module, provider

MODULE_FILES = Path(__file__).parent / "modules"

#: The programs that envtest's folder may have: how to print the version, and how to read it.
_ENVTEST = {
    "etcd": (("--version",), re.compile(r"etcd Version: (\d+\.\d+)")),
    "kube-apiserver": (("--version",), re.compile(r"Kubernetes v(\d+\.\d+)")),
    "kubectl": (("version", "--client"), re.compile(r"Client Version: v(\d+\.\d+)")),
}

#: The flags of every build: the same result in any folder, without debug information.
_FLAGS = ("-trimpath", "-buildvcs=false", "-gcflags=all=-dwarf=false")


class BuildError(Exception):
    """Go could not build a program or find a module; the message has Go's output."""


def binary(name: str, minor: str = DEFAULT_MINOR) -> Path:
    """Return the program's path; see `provide`."""
    return provide([name], minor)[name]


def provide(names: Iterable[str], minor: str = DEFAULT_MINOR) -> dict[str, Path]:
    """Return the programs' paths: from KUBEBUILDER_ASSETS, else the cache, else after `go build`.

    One Go builds all missing programs of a module, so it can link one while it compiles another.
    Raises BuildError, and KeyError for a name or a minor that `versions` does not have.
    """
    paths: dict[str, Path] = {}
    to_build: dict[str, list[str]] = {}
    for name in names:
        module, path = provider(name, minor), _envtest(name, minor)
        if path is None:
            to_build.setdefault(module.name, []).append(name)
        else:
            paths[name] = path
    for module_name, missing in to_build.items():
        paths |= _cached(MODULES[module_name], missing)
    return paths


def build_all(minor: str = DEFAULT_MINOR) -> dict[str, Path]:
    """Return every program that runs in or next to the tests' cluster, building the missing ones.

    Kubernetes comes first, since its build compiles most of the libraries that the others share.
    """
    kubernetes = MODULES[f"kubernetes-{minor}"]
    other_modules = (
        module
        for module in MODULES.values()
        if module.path != kubernetes.path and module.in_clusters
    )
    return provide(
        (name for module in (kubernetes, *other_modules) for name in module.commands), minor
    )


def module_dir(name: str) -> Path:
    """Return the source folder of a module of `versions.MODULES`, which has its CRDs.

    Go fetches it if it is missing. Raises BuildError, and KeyError for an unknown name.
    """
    module = MODULES[name]
    folder = MODULE_FILES / module.name
    _go(["mod", "download", module.path], folder)
    return Path(_go(["list", "-m", "-f", "{{.Dir}}", module.path], folder).strip())


def cache_folder(module: Module) -> Path:
    """Return the folder of the module's programs; other module files mean another folder."""
    base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    folder = MODULE_FILES / module.name
    files = (folder / "go.mod", folder / "go.sum", *sorted(folder.glob("*.go")))
    locked = hashlib.sha256(b"\0".join(file.read_bytes() for file in files)).hexdigest()[:12]
    return base / "rdma-webhook" / "bin" / f"{module.name}-{module.version}-{locked}"


@cache  # called often, and each call would start a process
def _envtest(name: str, minor: str) -> Path | None:
    """Return the program of KUBEBUILDER_ASSETS if its version fits."""
    assets = os.environ.get("KUBEBUILDER_ASSETS")
    if not assets or name not in _ENVTEST:
        return None
    path = Path(assets).resolve() / name
    required = minor if name != "etcd" else ETCD[minor].removeprefix("v").rpartition(".")[0]
    unfit = _unfit(path, required)
    if unfit is None:
        return path
    progress.say(f"KUBEBUILDER_ASSETS: {path} is ignored: {unfit}")
    return None


def _unfit(path: Path, required: str) -> str | None:
    """Return why the program does not have the wanted version (major.minor); None if it does."""
    arguments, pattern = _ENVTEST[path.name]
    try:
        ran = subprocess.run([path, *arguments], capture_output=True, text=True, check=False)
    except OSError:
        return "it cannot be run"
    match = pattern.search(ran.stdout)
    if ran.returncode or not match:
        return "it does not say its version"
    return None if match[1] == required else f"it is {match[1]}, not {required}"


def _cached(module: Module, names: Sequence[str]) -> dict[str, Path]:
    folder = cache_folder(module)
    paths = {name: folder / name for name in names}
    if not all(path.exists() for path in paths.values()):
        folder.mkdir(parents=True, exist_ok=True)
        with _alone(folder) as lock:
            missing = [name for name in names if not paths[name].exists()]
            if missing:  # another process may just have built them
                _build(module, missing, folder, lock)
    return paths


@contextmanager
def _alone(folder: Path) -> Iterator[int]:
    """Lock the folder; yield the lock's file descriptor."""
    with (folder / ".lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            with progress.step(f"waiting for another process that builds {folder.name}"):
                fcntl.flock(lock, fcntl.LOCK_EX)
        try:
            yield lock.fileno()
        finally:
            fcntl.flock(lock, fcntl.LOCK_UN)


def _build(module: Module, names: Sequence[str], folder: Path, lock: int) -> None:
    """Build the programs into the folder; if one fails, add none."""
    new = folder / ".new"
    shutil.rmtree(new, ignore_errors=True)  # left by a process that died
    new.mkdir()
    packages = {name: module.commands[name] for name in names}
    linker = ["-ldflags", linker_flags(module.stamps)]
    tags = [f"-tags={','.join(module.tags)}"] if module.tags else []
    arguments = ["build", *_FLAGS, *tags, *linker, "-o", f"{new}/", *packages.values()]
    programs = names[0] if len(names) == 1 else f"{len(names)} programs"
    with progress.step(f"building {programs} ({module.name} {module.version})"):
        # Go inherits the lock, so it is held even while a Go that outlives this process runs.
        _go(arguments, MODULE_FILES / module.name, lock)
    for name, package in packages.items():
        (new / file_of(package)).replace(folder / name)
    new.rmdir()


def file_of(package: str) -> str:
    """Return Go's name of a package's program: the path's last part other than a major version."""
    *_, parent, last = package.split("/")
    return parent if re.fullmatch(r"v[0-9]+", last) else last


def linker_flags(stamps: Mapping[str, str]) -> str:
    """Return the linker's arguments: no debug information, and each variable set."""
    return " ".join(["-s", "-w", *(f"-X {name}={value}" for name, value in stamps.items())])


def _go(arguments: list[str], module: Path, *keep: int) -> str:
    """Run Go in a module's folder, and return its output."""
    environ = {
        "GOGC": "400",  # makes the compiler a sixth faster, with more memory
        **os.environ,
        "CGO_ENABLED": "0",
        "GOFLAGS": "-mod=readonly",  # never change go.sum
        "GOTOOLCHAIN": "local",
        "GOWORK": "off",
    }
    command = ["go", *arguments]
    try:
        ran = subprocess.run(
            command,
            cwd=module,
            env=environ,
            pass_fds=keep,
            capture_output=True,
            text=True,
            check=False,
        )
    except FileNotFoundError:
        raise BuildError("there is no go on the PATH") from None
    if ran.returncode:
        output = "\n".join(ran.stderr.strip().splitlines()[-20:])
        raise BuildError(f"{module.name}: go {arguments[0]} failed:\n{output}")
    return ran.stdout
