from __future__ import annotations

import fcntl
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from subprocess import DEVNULL

import pytest

from tests.cluster import binaries
from tests.cluster.binaries import (
    BuildError,
    binary,
    build_all,
    cache_folder,
    module_dir,
    provide,
)
from tests.cluster.versions import MODULES

ROOT = Path(__file__).parents[3]

#: Stands in for a real Go, which takes minutes: it logs its calls and writes the requested
#: programs into a folder, under the names that `go help build` describes.
GO = """#!/bin/sh
echo "$CGO_ENABLED $GOFLAGS $GOTOOLCHAIN $GOWORK $(basename "$PWD"): go $*" >> "$LOG"
case $1 in list) echo /modules/x ;; esac
while [ $# -gt 0 ] && [ "$1" != -o ]; do shift; done
[ $# -gt 0 ] || exit 0
into=$2; shift 2
for package; do
    case ${package##*/} in v[0-9]*) package=${package%/*} ;; esac
    echo built > "$into${package##*/}"
    [ -z "$BROKEN" ] || { echo "it is broken" >&2; exit 1; }
done
"""


@pytest.fixture
def log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Set up an empty cache and a fake Go; return the log of its calls."""
    program(tmp_path / "path/go", GO)
    monkeypatch.setenv("PATH", f"{tmp_path / 'path'}:/usr/bin:/bin")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("LOG", str(tmp_path / "log"))
    monkeypatch.delenv("KUBEBUILDER_ASSETS", raising=False)
    binaries._envtest.cache_clear()
    (tmp_path / "log").touch()
    return tmp_path / "log"


@pytest.fixture
def assets(log: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Set up an envtest folder of Kubernetes 1.36, and an empty cache."""
    del log
    folder = tmp_path / "assets"
    program(folder / "etcd", "#!/bin/sh\necho 'etcd Version: 3.6.8'\necho 'Git SHA: 1'\n")
    program(folder / "kube-apiserver", "#!/bin/sh\n[ $1 = --version ] && echo Kubernetes v1.36.0\n")
    answer = "[ \"$*\" = 'version --client' ] && echo 'Client Version: v1.36.1'"
    program(folder / "kubectl", f"#!/bin/sh\n{answer}\n")
    monkeypatch.setenv("KUBEBUILDER_ASSETS", str(folder))
    return folder


def program(path: Path, text: str) -> None:
    """Write an executable program."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)


def test_a_build(log: Path, tmp_path: Path) -> None:
    """A program is built from its module's lock alone, without C, paths or other toolchains."""
    built = binary("kubectl")
    folder = cache_folder(MODULES["kubernetes-1.36"])
    stamp = "-X k8s.io/component-base/version"
    assert folder.parent == tmp_path / "cache/rdma-webhook/bin"
    assert built == folder / "kubectl"
    assert built.read_text() == "built\n"
    assert log.read_text() == (
        "0 -mod=readonly local off kubernetes-1.36: go build -trimpath -buildvcs=false"
        f" -gcflags=all=-dwarf=false -ldflags -s -w {stamp}.gitVersion=v1.36.3"
        f" {stamp}.gitMajor=1 {stamp}.gitMinor=36"
        f" -o {folder}/.new/ k8s.io/kubernetes/cmd/kubectl\n"
    )


def test_a_build_with_tags(log: Path) -> None:
    """Go gets the module's build tags, so promtool has no clients of clouds."""
    binary("promtool")
    assert " -tags=remove_all_sd -ldflags " in log.read_text()


def test_the_cache_of_a_user(monkeypatch: pytest.MonkeyPatch) -> None:
    """If XDG_CACHE_HOME is unset or empty, the cache is in ~/.cache."""
    monkeypatch.setenv("HOME", "/home/a")
    monkeypatch.setenv("XDG_CACHE_HOME", "")
    folder = cache_folder(MODULES["coredns"])
    assert str(folder).startswith("/home/a/.cache/rdma-webhook/bin/coredns-v")


def test_built_once(log: Path) -> None:
    """A cached program is not built again, and needs no Go."""
    first = binary("etcd")
    (log.parent / "path/go").unlink()
    assert binary("etcd") == first
    assert len(log.read_text().splitlines()) == 1


def test_two_at_once(log: Path) -> None:
    """The second caller waits for the first one's build and uses its result."""
    paths: list[Path] = []
    threads = [threading.Thread(target=lambda: paths.append(binary("etcd"))) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert len(paths) == 2
    assert paths[0] == paths[1]
    assert len(log.read_text().splitlines()) == 1


def test_waiting_is_reported(log: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A caller that waits for another process reports it."""
    folder = cache_folder(MODULES["kubernetes-1.36"])
    folder.mkdir(parents=True)
    with (folder / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        waiting = threading.Thread(target=binary, args=("etcd",))
        waiting.start()
        printed, until = "", time.monotonic() + 60
        while "waiting for another process" not in printed and time.monotonic() < until:
            printed += capsys.readouterr().err
            time.sleep(0.01)
        assert not log.read_text()
    waiting.join(60)
    assert f"waiting for another process that builds {folder.name}" in printed
    assert log.read_text()


def test_a_lock_file_of_the_past(log: Path) -> None:
    """A dead process may leave a lock file and half a program, which do not matter."""
    folder = cache_folder(MODULES["kubernetes-1.36"])
    folder.mkdir(parents=True)
    (folder / ".lock").touch()
    (folder / ".new").mkdir()
    (folder / ".new/etcd").write_text("half")
    assert binary("etcd").read_text() == "built\n"
    assert log.read_text()
    assert sorted(file.name for file in folder.iterdir()) == [".lock", "etcd"]


def test_a_build_that_fails(log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The error quotes Go's output, and an incomplete program is never used."""
    monkeypatch.setenv("BROKEN", "1")
    with pytest.raises(BuildError, match=r"kubernetes-1.36: go build failed:\nit is broken"):
        provide(["etcd", "kubectl"])
    folder = cache_folder(MODULES["kubernetes-1.36"])
    assert not (folder / "etcd").exists()
    monkeypatch.delenv("BROKEN")
    assert binary("etcd").read_text() == "built\n"
    assert len(log.read_text().splitlines()) == 2


def test_no_go(log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The message names Go, and not a missing file."""
    monkeypatch.setenv("PATH", str(log.parent / "empty"))
    with pytest.raises(BuildError, match="there is no go on the PATH"):
        binary("etcd")


def test_another_lock_is_another_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The lock is part of the cache's key, so a changed sum causes a new build."""
    folder = tmp_path / "kwok"
    folder.mkdir()
    (folder / "go.mod").write_text("module a")
    (folder / "go.sum").write_text("sum 1")
    monkeypatch.setattr(binaries, "MODULE_FILES", tmp_path)
    before = cache_folder(MODULES["kwok"])
    assert cache_folder(MODULES["kwok"]) == before
    (folder / "go.sum").write_text("sum 2")
    assert cache_folder(MODULES["kwok"]) != before


def test_module_sources(log: Path) -> None:
    """Go prints a module's folder, after downloading the module if needed."""
    assert module_dir("lws") == Path("/modules/x")
    assert [line.split(": ")[1] for line in log.read_text().splitlines()] == [
        "go mod download sigs.k8s.io/lws",
        "go list -m -f {{.Dir}} sigs.k8s.io/lws",
    ]


def test_all_of_a_cluster(log: Path) -> None:
    """Kubernetes is built first, since the others share its libraries; no other tool is."""
    built = build_all("1.34")
    commands = {command for module in MODULES.values() for command in module.commands}
    assert set(built) == commands - {"gatekeeper", "crane", "cosign", "syft"}
    assert built["kubelet"].parent == cache_folder(MODULES["kubernetes-1.34"])
    first = log.read_text().splitlines()[0]
    assert "kubernetes-1.34: go build" in first
    assert "/kube-apiserver" in first
    assert all(path.is_file() for path in built.values())


def test_a_single_go_for_a_module(log: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A module's missing programs are built together, with a message; others are not rebuilt."""
    first = binary("etcd")
    built = provide(["etcd", "vegeta", "kubelet", "kubectl"])
    assert built["etcd"] == first
    assert [line.split(".new/ ")[1] for line in log.read_text().splitlines()] == [
        "go.etcd.io/etcd/server/v3",
        "k8s.io/kubernetes/cmd/kubelet k8s.io/kubernetes/cmd/kubectl",
        "github.com/tsenart/vegeta/v12",
    ]
    assert sorted(file.name for file in first.parent.iterdir()) == [
        ".lock",
        "etcd",
        "kubectl",
        "kubelet",
    ]
    printed = capsys.readouterr().err
    assert "building etcd (kubernetes-1.36 v1.36.3)" in printed
    assert "building 2 programs (kubernetes-1.36 v1.36.3)" in printed


@pytest.mark.usefixtures("assets")
@pytest.mark.parametrize("name", ["etcd", "kube-apiserver", "kubectl"])
def test_envtest_comes_first(name: str, assets: Path, log: Path) -> None:
    """A developer's programs are used if they have the requested minor, in any patch release."""
    assert binary(name, "1.36") == assets / name
    assert not log.read_text()


def test_envtest_has_three(assets: Path, log: Path) -> None:
    """By convention the folder has three programs; any other one in it is not used."""
    program(assets / "kubelet", "#!/bin/sh\necho Kubernetes v1.36.3\n")
    assert binary("kubelet").parent == cache_folder(MODULES["kubernetes-1.36"])
    assert log.read_text()


def test_envtest_of_another_minor(
    assets: Path, log: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A program of another minor is ignored, and one message names both versions."""
    for _ in range(2):
        built = binary("kube-apiserver", "1.34")
        assert built.parent == cache_folder(MODULES["kubernetes-1.34"])
    assert log.read_text()
    lines = [line for line in capsys.readouterr().err.splitlines() if "KUBEBUILDER" in line]
    assert lines == [
        f"KUBEBUILDER_ASSETS: {assets}/kube-apiserver is ignored: it is 1.36, not 1.34"
    ]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (None, "it cannot be run"),
        ("not a program", "it cannot be run"),
        ("#!/bin/sh\necho hello\n", "it does not say its version"),
        ("#!/bin/sh\necho Kubernetes v1.36.3\nexit 1\n", "it does not say its version"),
    ],
)
def test_envtest_that_is_broken(
    text: str | None, reason: str, assets: Path, log: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A program that cannot be used is ignored, with the reason."""
    (assets / "kube-apiserver").unlink()
    if text is not None:
        program(assets / "kube-apiserver", text)
    assert binary("kube-apiserver").read_text() == "built\n"
    assert log.read_text()
    assert f"{assets}/kube-apiserver is ignored: {reason}" in capsys.readouterr().err


def test_a_go_that_outlives_us_holds_the_lock(log: Path, tmp_path: Path) -> None:
    """If a test run is killed, its Go still writes, so nobody else may build meanwhile."""
    program(tmp_path / "path/go", '#!/bin/sh\ntouch "$LOG.begun"\nexec sleep 60\n')
    argv = [sys.executable, "-c", "from tests.cluster.binaries import binary; binary('etcd')"]
    with subprocess.Popen(argv, cwd=ROOT, start_new_session=True, stderr=DEVNULL) as child:
        begun, until = Path(f"{log}.begun"), time.monotonic() + 60
        while not begun.exists() and time.monotonic() < until:
            time.sleep(0.01)
        child.kill()
        child.wait()
        try:
            lock = (cache_folder(MODULES["kubernetes-1.36"]) / ".lock").open("w")
            with lock, pytest.raises(BlockingIOError):
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        finally:
            os.killpg(child.pid, signal.SIGKILL)
