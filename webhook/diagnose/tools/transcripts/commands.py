"""Which machine a typed command shows: `ssh gpu-01 ibstat` shows gpu-01.

What pdsh prints is of many machines, and a file that was saved may be of any, so nothing says whose
their output is.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from webhook.diagnose.tools.transcripts.segments import HOST

#: Words of a command that are looked at.
_MOST = 60
_REMOTE_HOST = re.compile(rf"(?:[\w.+-]{{1,64}}@)?(?P<node>{HOST})", re.ASCII)
_BEFORE = frozenset(("sudo", "time", "nice", "env", "watch", "stdbuf", "exec"))
#: These run what they are given on other machines.
_ELSEWHERE = frozenset(
    (
        *("ansible", "ansible-playbook", "clush", "dsh", "for", "mpiexec", "mpirun", "orterun"),
        *("parallel-ssh", "pdsh", "prun", "pssh", "salt", "sshpass", "srun", "until", "while"),
        "xargs",
    )
)
_KUBECTL = frozenset(("kubectl", "oc", "k", "kk"))
_SSH = frozenset(("ssh", "rsh"))
#: These show files.
_SHOWING = frozenset(
    ("awk", "bat", "cat", "egrep", "grep", "head", "jq", "less", "more", "sed", "tail", "zcat")
)
_OF_THE_MACHINE = ("/sys", "/proc", "/etc", "/dev", "/run", "/var")
_SHELLS = frozenset(("ash", "bash", "dash", "sh", "zsh"))
#: Options with a value in the next word.
_SSH_VALUES = frozenset(f"-{letter}" for letter in "bcDEeFIiJLlmOopQRSWw")
_KUBECTL_VALUES = frozenset(
    ("-n", "--namespace", "-c", "--container", "--context", "--kubeconfig", "--cluster", "--user")
)
#: Other commands that come behind a prompt that may also be a comment.
_TOOLS = re.compile(
    r"ib[a-z0-9_]{2,20}|rdma|mst|lspci|nvidia-smi|show_gids|perfquery|ip|ls|uname|hostname"
    r"|dmidecode|ofed_info|systemctl|mlxconfig|mlxlink|ethtool|lsmod|modinfo|exit"
)


def is_command(text: str) -> bool:
    """Return whether a text is a command that is typed to look at machines, not a comment."""
    name = next(_words(text), "")
    known = {*_SHOWING, *_KUBECTL, *_SSH, *_ELSEWHERE} - {"for", "until", "while"}
    return name in known or _TOOLS.fullmatch(name) is not None


#: A machine, None for one that nothing names.
_Node = str | None


def where(command: str, node: _Node, shell: _Node) -> tuple[_Node, _Node]:
    """Return the machine that a command shows, and the one whose shell is open behind it.

    `node` is the machine that the command is typed on; `shell` is the one whose shell an earlier
    command opened, whose prompt may name no machine.
    """
    name, *rest = list(_words(command)) or [""]
    if name in _SSH:
        return _by_ssh(rest, shell)
    if name in _KUBECTL:
        return _by_kubectl(rest, shell)
    if name in ("exit", "logout"):
        return None, None
    shows_a_file = name in _SHOWING and not any(one.startswith(_OF_THE_MACHINE) for one in rest)
    return (None if name in _ELSEWHERE or shows_a_file else node), shell


def _words(command: str) -> Iterator[str]:
    """Yield the words, from the command's own name on, which comes without its folder."""
    words = iter(command.split(None, _MOST)[:_MOST])
    for word in words:
        name = word.rpartition("/")[2]
        if name not in _BEFORE and "=" not in name and not name.startswith("-"):
            yield name
            yield from words


def _positional(words: Sequence[str], with_value: frozenset[str]) -> list[str]:
    """Return the words from the first one on that is neither an option nor its value."""
    at = 0
    while at < len(words) and words[at].startswith("-"):
        at += 2 if words[at] in with_value else 1
    return list(words[at:])


def _by_ssh(words: Sequence[str], shell: _Node) -> tuple[_Node, _Node]:
    target, *command = _positional(words, _SSH_VALUES) or [""]
    host = _REMOTE_HOST.fullmatch(target)
    other = host["node"] if host else None
    return other, shell if command else other


def _by_kubectl(words: Sequence[str], shell: _Node) -> tuple[_Node, _Node]:
    verb, *rest = _positional(words, _KUBECTL_VALUES) or [""]
    if verb not in ("exec", "debug", "rsh"):
        return None, shell
    target, *behind = _positional(rest, _KUBECTL_VALUES) or [""]
    host = _REMOTE_HOST.fullmatch(target.rpartition("/")[2])
    other = host["node"] if host else None
    run = [one for one in _positional(behind, _KUBECTL_VALUES) if one != "--"]
    opens = verb != "exec" or (len(run) == 1 and run[0].rpartition("/")[2] in _SHELLS)
    return other, other if opens else shell
