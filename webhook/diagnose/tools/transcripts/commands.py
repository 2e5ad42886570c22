"""Commands in a saved text: the node of their output, and values printed alone."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence

from webhook.diagnose.tools.observations import Line, NodeProperty, Origin, PropertyObservation
from webhook.diagnose.tools.products import is_known_product
from webhook.diagnose.tools.readers.notation import dmi_value
from webhook.diagnose.tools.transcripts.segments import HOST, NodeOutput

# The node that a typed command shows: `ssh gpu-01 ibstat` shows gpu-01.
#
# The output of pdsh comes from many nodes, and a saved file may come from any, so the node of their
# output is unknown.

#: Words of a command that are read.
_MAX_WORDS = 60
_REMOTE_HOST = re.compile(rf"(?:[\w.+-]{{1,64}}@)?(?P<node>{HOST})", re.ASCII)
_BEFORE = frozenset(("sudo", "time", "nice", "env", "watch", "stdbuf", "exec"))
#: Commands that run their arguments on other nodes.
_ELSEWHERE = frozenset(
    (
        *("ansible", "ansible-playbook", "clush", "dsh", "for", "mpiexec", "mpirun", "orterun"),
        *("parallel-ssh", "pdsh", "prun", "pssh", "salt", "sshpass", "srun", "until", "while"),
        "xargs",
    )
)
_KUBECTL = frozenset(("kubectl", "oc", "k", "kk"))
_SSH = frozenset(("ssh", "rsh"))
#: Commands that show files.
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
#: Other commands after a prompt that may also start a comment.
_TOOLS = re.compile(
    r"ib[a-z0-9_]{2,20}|rdma|mst|lspci|(?:nvidia|amd|rocm)-smi|show_gids|perfquery|ip|ls|uname"
    r"|hostname"
    r"|dmidecode|ofed_info|systemctl|mlxconfig|mlxlink|ethtool|lsmod|modinfo|exit"
)


def is_command(text: str) -> bool:
    """Return whether a text is a command that inspects nodes, not a comment."""
    name = next(_words(text), "")
    names = {*_SHOWING, *_KUBECTL, *_SSH, *_ELSEWHERE} - {"for", "until", "while"}
    return name in names or _TOOLS.fullmatch(name) is not None


#: A node; None if the text does not name it.
_Node = str | None


def nodes_of_command(command: str, node: _Node, shell: _Node) -> tuple[_Node, _Node]:
    """Return the node that a command shows, and the node whose shell is open after it.

    The command is typed on `node`; `shell` is the node of a shell that an earlier command opened
    and whose prompt may have no name.
    """
    name, *rest = list(_words(command)) or [""]
    if name in _SSH:
        return _by_ssh(rest, shell)
    if name in _KUBECTL:
        return _by_kubectl(rest, shell)
    if name in ("exit", "logout"):
        return None, None
    shows_a_file = name in _SHOWING and not any(word.startswith(_OF_THE_MACHINE) for word in rest)
    return (None if name in _ELSEWHERE or shows_a_file else node), shell


def _words(command: str) -> Iterator[str]:
    """Yield the command's name, without its folder, and the words after it."""
    words = iter(command.split(None, _MAX_WORDS)[:_MAX_WORDS])
    for word in words:
        name = word.rpartition("/")[2]
        if name not in _BEFORE and "=" not in name and not name.startswith("-"):
            yield name
            yield from words


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
    run = [word for word in _positional(behind, _KUBECTL_VALUES) if word != "--"]
    opens = verb != "exec" or (len(run) == 1 and run[0].rpartition("/")[2] in _SHELLS)
    return other, other if opens else shell


def _positional(words: Sequence[str], with_value: frozenset[str]) -> list[str]:
    """Return the words after the leading options and their values."""
    index = 0
    while index < len(words) and words[index].startswith("-"):
        index += 2 if words[index] in with_value else 1
    return list(words[index:])


# Commands that print a single name, which has no meaning without the command.
#
#   $ hostname              $ sudo dmidecode -s system-product-name
#   gpu-01                  DGXH100
#
# Without the command, a text may begin with the output of hostname, as for `hostname; ibstat`: a
# word in the form of a host name, above a line of a tool. Only the product of a known machine
# type is then recognized. Sources: dmidecode, dmiopt.c; coreutils, uname.c.

#: Command → the property that it prints; options may follow `hostname`.
_PROPERTIES: dict[str, NodeProperty] = {
    "hostname": "hostname",
    "uname -n": "hostname",
    "hostnamectl hostname": "hostname",
    "hostnamectl --static": "hostname",
    "cat /etc/hostname": "hostname",
    "cat /proc/sys/kernel/hostname": "hostname",
    "dmidecode -s system-product-name": "product",
    "dmidecode -s system-manufacturer": "vendor",
    "dmidecode -s chassis-asset-tag": "asset-tag",
    "cat /sys/class/dmi/id/product_name": "product",
    "cat /sys/class/dmi/id/sys_vendor": "vendor",
    "cat /sys/class/dmi/id/chassis_asset_tag": "asset-tag",
}
_HOSTNAME_OPTION = re.compile(r" (?:-[fs]|--fqdn|--long|--short)$")
_HOST_NAME = re.compile(HOST, re.ASCII)
#: The usual form of a node name: not a word, a product or udev's name of a device.
_NODE = re.compile(r"(?=[a-z-]{0,60}\d)[a-z][a-z0-9-]{0,62}(?:\.[a-z0-9-]{1,63}){0,8}", re.ASCII)
_DEVICE = re.compile(r"(?:e(?:n|th)|wl|ib|mlx|roce|rdma|irdma|bond|rxe|siw|qedr|usb)[a-z]{0,3}\d.*")
#: Characters of the longest value.
_MAX_VALUE = 300


def lone_value_observations(
    output: NodeOutput, recognized: Collection[int], *, is_first: bool
) -> Iterator[PropertyObservation]:
    """Yield the values that commands printed alone; `recognized` are lines of other tools.

    `is_first`: whether the text begins with this output.
    """
    lines = [line for line in output.lines if _may_be_value(line)]
    if output.command is not None:
        yield from _of_command(output.command, lines)
        return
    if is_first and len(lines) > 1 and lines[1].number in recognized:
        name = lines[0].text.strip()
        if lines[0].number not in recognized and _is_node(name):
            yield PropertyObservation(Origin("hostname", lines[0].number), "hostname", name)
    for line in lines:
        if line.number not in recognized and is_known_product(line.text.strip()):
            product = line.text.strip()
            yield PropertyObservation(Origin("dmidecode -s", line.number), "product", product)


def _may_be_value(line: Line) -> bool:
    """Return whether a line may be a value, not blank or a comment of dmidecode."""
    return len(line.text) <= _MAX_VALUE and bool(line.text.strip()) and line.text[0] != "#"


def _of_command(command: str, lines: Sequence[Line]) -> Iterator[PropertyObservation]:
    typed, *following = re.split(r"\s*(?:;|&&)\s*", " ".join(command.split()), maxsplit=1)
    typed = _HOSTNAME_OPTION.sub("", typed.removeprefix("sudo "))
    name = _PROPERTIES.get(typed)
    if name is None or not lines or (len(lines) > 1 and not following):
        return
    value = dmi_value(lines[0].text)
    if value is not None and (name != "hostname" or _HOST_NAME.fullmatch(value)):
        yield PropertyObservation(Origin(typed, lines[0].number), name, value)


def _is_node(name: str) -> bool:
    return bool(_NODE.fullmatch(name)) and not is_command(name) and not _DEVICE.fullmatch(name)
