"""What a container's `command` and `args` run: MPI launchers and sshd, wherever they stand.

Kubernetes joins both lists to one. Without `command` the image's entrypoint runs, with
`args` as its words: where those begin with a launcher or a shell, it is taken for one that
ends in `exec "$@"`, since no other could use them.

    seen                                              left alone
    ----                                              ----------
    mpirun …; sh -c "… mpirun …"                      words of quotes, comments, heredocs
    env, exec, time, timeout 60, numactl … mpirun     ssh host mpirun
    && || | ; if for while ( ) { } $( ) functions     eval, xargs, $MPIRUN, aliases
    sh -c '… exec "$@"' sh mpirun …                   sh -c in a script; what a script file does
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from webhook.core.argv import Word, basename, command_at, script_at
from webhook.core.openmpi import judge, reaches_by_ssh
from webhook.core.path import Path
from webhook.core.pod import PodManifest, containers_of, items, strings
from webhook.core.remap import unwrap
from webhook.core.shell import TOO_LARGE, read

#: Words that start MPI ranks. `mpirun.real` is what a site's own `mpirun` wraps (Horovod's
#: images do so); horovodrun, deepspeed, torchrun and srun take no options of mpirun.
LAUNCHER_WORDS = frozenset(
    {
        *("mpirun", "mpiexec", "orterun", "prterun", "mpirun.real", "mpirun_rsh"),
        *("mpirun.openmpi", "mpiexec.openmpi", "mpirun.mpich", "mpiexec.mpich", "mpiexec.hydra"),
    }
)

#: In front of a launcher these may clear its environment.
_OTHER_USER = frozenset({"doas", "gosu", "runuser", "su", "su-exec", "sudo"})
_ASKING = frozenset({"-V", "--version", "-version", "-h", "--help", "-help"})
_HANDS_OVER = 'exec "$@"'
_PARSED = 64 * 1024  # bytes of launching scripts in a pod
_SCRIPTS = 8  # and their number: each may cost what shell.py says


class Launch(NamedTuple):
    """A launcher that a container runs, and what is known of its words."""

    #: Where its word stands below the container: ("args", 1). For a script: the script.
    path: Path
    end: int | None  #: byte offset behind its word in a script; None in a list of words
    front: tuple[Word, ...]  #: wrappers and assignments in front of it
    words: tuple[Word, ...]  #: the launcher's word and all behind it
    #: "sudo", say: the launcher may not see the container's environment. Or TOO_LARGE.
    behind: str = ""


class _Run(NamedTuple):
    path: Path
    end: int | None
    front: tuple[Word, ...]
    words: tuple[Word, ...]


def launches_of(pod: PodManifest, manifest: dict[str, Any]) -> tuple[Launch, ...]:
    """List the launchers that a container of the pod runs; cheap where no word looks like one."""
    if not _may_launch(text_of(manifest)):
        return ()
    if not _is_readable(pod):
        return (Launch(("command",), None, (), (), behind=TOO_LARGE),)
    return _launches_of(manifest)


def _launches_of(manifest: dict[str, Any]) -> tuple[Launch, ...]:
    found = []
    for run in _runs(manifest):
        if not run.words:
            found.append(Launch(*run, behind=TOO_LARGE))
            continue
        name = basename(run.words[0] or "")
        if name in LAUNCHER_WORDS:
            if len(run.words) > 1 and run.words[1] not in _ASKING:
                found.append(Launch(*run))
        elif name in _OTHER_USER and any(word and _launches(word) for word in run.words):
            found.append(Launch(*run, behind=name))
    return tuple(found)


def runs_sshd(manifest: dict[str, Any]) -> bool:
    """Whether a container runs sshd as a command: its children do not inherit the environment."""
    return mentions(manifest, "sshd") and any(
        run.words and basename(run.words[0] or "") == "sshd" for run in _runs(manifest)
    )


def mentions(manifest: dict[str, Any], text: str) -> bool:
    """Whether a text occurs anywhere in a container's command."""
    return text in text_of(manifest)


def text_of(manifest: dict[str, Any]) -> str:
    """Return all words of a container's command, one per line."""
    return "\n".join([*strings(manifest, ("command",)), *strings(manifest, ("args",))])


def forwards_by_ssh(manifest: dict[str, Any]) -> bool:
    """Whether a container starts Open MPI ranks over ssh.

    Those get OMPI_* of the launcher's environment, and nothing else without `-x`
    (Open MPI 4.1, schizo_ompi.c).
    """
    whole = text_of(manifest)
    if not _may_launch(whole):
        return False
    env = env_names(manifest)
    return any(
        judge(launch.front, launch.words, env, whole).proof and reaches_by_ssh(launch.words, env)
        for launch in _launches_of(manifest)
        if not launch.behind
    )


def env_names(manifest: dict[str, Any]) -> frozenset[str]:
    """Return the names in a container's `env`."""
    names = (item.get("name") for item in items(manifest, ("env",)))
    return frozenset(name for name in names if name.__class__ is str)


def _is_readable(pod: PodManifest) -> bool:
    """Whether the pod's launching scripts together are small and few enough to be parsed."""
    sizes = [
        len(word)
        for container in containers_of(pod)
        for field in ("command", "args")
        for word in strings(container.manifest, (field,))
        if " " in word and _may_launch(word)
    ]
    return len(sizes) <= _SCRIPTS and sum(sizes) <= _PARSED


def _may_launch(text: str) -> bool:
    return "mpirun" in text or "mpiexec" in text or "rterun" in text


def _launches(word: str) -> bool:
    """Whether a word is a launcher or, as for `su -c`, a script that seems to run one."""
    return any(basename(part) in LAUNCHER_WORDS for part in word.split())


def _runs(manifest: dict[str, Any]) -> Iterator[_Run]:
    """Yield what a container runs; a run without words stands for a script not parsed."""
    command = strings(manifest, ("command",))
    argv, split = command + strings(manifest, ("args",)), len(command)
    at = command_at(argv, unwrap(argv))
    while at is not None:
        script = script_at(argv, at)
        if script is None:
            yield _Run(_path(at, split), None, tuple(argv[:at]), tuple(argv[at:]))
            return
        yield from _in_script(argv[script], _path(script, split))
        if not argv[script].rstrip().endswith(_HANDS_OVER):
            return
        at = command_at(argv, script + 2)


def _path(at: int, split: int) -> Path:
    return ("command", at) if at < split else ("args", at - split)


def _in_script(script: str, path: Path) -> Iterator[_Run]:
    if not _may_launch(script) and "sshd" not in script:
        return
    commands, problem = read(script)
    if problem == TOO_LARGE:
        yield _Run(path, None, (), ())
    for words, ends in commands:
        at = command_at(words)
        if at is not None and at < len(ends):
            yield _Run(path, ends[at], words[:at], words[at:])
