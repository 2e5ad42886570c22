"""The cluster's programs: a developer's own, cached ones, or built from `modules/` with Go."""

from __future__ import annotations

import fcntl
import hashlib
import os
import re
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from pathlib import Path

from tests.cluster import progress
from tests.cluster.versions import DEFAULT_MINOR, ETCD, MODULES, Module, provider

MODULE_FILES = Path(__file__).parent / "modules"

#: What envtest's folder may give, how it tells its version, and how the version reads.
_ENVTEST = {
    "etcd": (("--version",), re.compile(r"etcd Version: (\d+\.\d+)")),
    "kube-apiserver": (("--version",), re.compile(r"Kubernetes v(\d+\.\d+)")),
    "kubectl": (("version", "--client"), re.compile(r"Client Version: v(\d+\.\d+)")),
}


class BuildError(Exception):
    """Go could not build a program or find a module; the message says what it said."""


def binary(name: str, minor: str = DEFAULT_MINOR) -> Path:
    """Return the program's path: KUBEBUILDER_ASSETS, else the cache, else after `go build`.

    Raises BuildError; KeyError for a name or a minor that `versions` does not have.
    """
    module = provider(name, minor)
    return _envtest(name, minor) or _cached(module, name)


def build_all(minor: str = DEFAULT_MINOR) -> dict[str, Path]:
    """Return every program that runs in or beside a cluster, building what the cache lacks.

    The API server comes first: what takes its time are libraries that the others share.
    """
    kubernetes = MODULES[f"kubernetes-{minor}"]
    others = (one for one in MODULES.values() if one.path != kubernetes.path)
    names = [name for module in (kubernetes, *others) for name in module.commands]
    return {name: binary(name, minor) for name in sorted(names, key="kube-apiserver".__ne__)}


def module_dir(name: str) -> Path:
    """Return the source folder of a module of `versions.MODULES`, where its CRDs lie.

    Go fetches it where the machine lacks it. Raises BuildError; KeyError for an unknown name.
    """
    module = MODULES[name]
    where = MODULE_FILES / module.name
    _go(["mod", "download", module.path], where)
    return Path(_go(["list", "-m", "-f", "{{.Dir}}", module.path], where).strip())


def cache_folder(module: Module) -> Path:
    """Return where the module's programs are kept: other contents are another folder."""
    base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    folder = MODULE_FILES / module.name
    files = (folder / "go.mod", folder / "go.sum", *sorted(folder.glob("*.go")))
    locked = hashlib.sha256(b"\0".join(file.read_bytes() for file in files)).hexdigest()[:12]
    return base / "rdma-webhook" / "bin" / f"{module.name}-{module.version}-{locked}"


@cache  # a run asks often, and the answer costs a process
def _envtest(name: str, minor: str) -> Path | None:
    """Return the program of KUBEBUILDER_ASSETS where its version fits."""
    assets = os.environ.get("KUBEBUILDER_ASSETS")
    if not assets or name not in _ENVTEST:
        return None
    path = Path(assets).resolve() / name
    wanted = minor if name != "etcd" else ETCD[minor].removeprefix("v").rpartition(".")[0]
    unfit = _unfit(path, wanted)
    if unfit is None:
        return path
    progress.say(f"KUBEBUILDER_ASSETS: {path} is ignored: {unfit}")
    return None


def _unfit(path: Path, wanted: str) -> str | None:
    """Return why the program is not of the version (major.minor) that is wanted, if so."""
    arguments, pattern = _ENVTEST[path.name]
    try:
        asked = subprocess.run([path, *arguments], capture_output=True, text=True, check=False)
    except OSError:
        return "it cannot be run"
    match = pattern.search(asked.stdout)
    if asked.returncode or not match:
        return "it does not say its version"
    return None if match[1] == wanted else f"it is {match[1]}, not {wanted}"


def _cached(module: Module, name: str) -> Path:
    path = cache_folder(module) / name
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        with _alone(path.parent, name) as lock:
            if not path.exists():  # somebody else may just have built it
                _build(module, name, path, lock)
    return path


@contextmanager
def _alone(folder: Path, name: str) -> Iterator[int]:
    """Hold the folder's lock, and give its file descriptor."""
    with (folder / ".lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            with progress.step(f"waiting for another process that builds {folder.name} ({name})"):
                fcntl.flock(lock, fcntl.LOCK_EX)
        try:
            yield lock.fileno()
        finally:
            fcntl.flock(lock, fcntl.LOCK_UN)


def _build(module: Module, name: str, path: Path, lock: int) -> None:
    new = path.with_name(f".{name}.new")
    arguments = [
        "build",
        "-trimpath",
        "-buildvcs=false",
        "-ldflags",
        linker_flags(module.stamps),
        "-o",
        str(new),
        module.commands[name],
    ]
    with progress.step(f"building {name} ({module.name} {module.version})"):
        # Go inherits the lock: it holds for as long as a Go runs that outlives us.
        _go(arguments, MODULE_FILES / module.name, lock)
    new.replace(path)


def linker_flags(stamps: Mapping[str, str]) -> str:
    """Return the linker's arguments: no debug information, and each variable set."""
    return " ".join(["-s", "-w", *(f"-X {name}={value}" for name, value in stamps.items())])


def _go(arguments: list[str], module: Path, *keep: int) -> str:
    """Run Go in a module's folder and return what it printed."""
    environ = {
        "GOGC": "400",  # the compiler then takes a sixth less time, and more memory
        **os.environ,
        "CGO_ENABLED": "0",
        "GOFLAGS": "-mod=readonly",  # go.sum has the last word
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
        said = "\n".join(ran.stderr.strip().splitlines()[-20:])
        raise BuildError(f"{module.name}: go {arguments[0]} failed:\n{said}")
    return ran.stdout
