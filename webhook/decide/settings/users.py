"""Programs that run a command as another user or without IPC_LOCK, and its environment.

    program                    environment
    -------                    -----------
    su USER -c SCRIPT          kept, but HOME, SHELL, USER and LOGNAME
    su - USER, su -l           dropped, but TERM and what -w lists
    runuser                    as su; runuser -u USER COMMAND keeps it
    sudo [-u USER] COMMAND     dropped, but -E, --preserve-env, and NAME=VALUE before COMMAND
    doas -u USER COMMAND       dropped (doas.conf may keep it)
    gosu, su-exec USER COMMAND kept
    setpriv --reuid USER       kept; --reset-env drops it
    chroot --userspec USER DIR kept
    capsh --user=USER -- -c    kept

Root loses its capabilities when it becomes another user, and those that leave the bounding set
when it runs a program (capabilities(7)): `setpriv --bounding-set -ipc_lock`, `capsh
--drop=cap_ipc_lock`. Sources: su(1) and setpriv(1) of util-linux 2.38, sudo(8) 1.9, gosu 1.14,
doas.conf(5), chroot(1) of coreutils 9.1, capsh(1) of libcap 2.66, run with these versions.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from webhook.decide.shell.argv import Word, basename


class _Grammar(NamedTuple):
    """The options of a program, as for getopt_long."""

    flags: str  #: letters of options without a value
    values: str = ""  #: letters of options with a value
    long: Mapping[str, str] = {}  #: long option → its letter, or its own name
    permutes: bool = False  #: whether options may follow operands


class _Read(NamedTuple):
    options: dict[str, Word]  #: letter → value, "" for a flag
    operands: tuple[int, ...]  #: the indexes of the words that are not options


class UserChange(NamedTuple):
    """What a program does before it runs its command."""

    user: Word  #: None if unknown
    description: str  #: "su - worker"
    command: int | None = None  #: the index of the command's first word
    script: Word = None  #: or the script that the user's shell runs
    drops_env: bool = False  #: whether it drops the environment
    keeps: tuple[str, ...] = ()  #: the variables that it keeps nevertheless
    assignments: tuple[Word, ...] = ()  #: variables that it sets
    drops_ipc_lock: bool = False  #: whether it takes that capability from root, too

    @property
    def keeps_ipc_lock(self) -> bool:
        """Whether the user certainly is root, with that capability."""
        is_root = self.user is not None and self.user.partition(":")[0] in ("", "root", "0")
        return is_root and not self.drops_ipc_lock


def _long_options(text: str) -> Mapping[str, str]:
    """Read pairs of a long option and its letter; without a letter, it stands for itself."""
    pairs = (pair.partition(":") for pair in text.split())
    return {name.removesuffix("="): letter or name for name, _, letter in pairs}


_SU = _Grammar(
    flags="flmpPThV",
    values="cgGswu",
    long=_long_options(
        "command:c session-command:c group:g supp-group:G shell:s whitelist-environment:w user:u"
        " fast:f login:l pty:P preserve-environment:p no-pty:T"
    ),
    permutes=True,
)
_SUDO = _Grammar(
    flags="ABbEeHiKklnPSsVvN",
    values="CDghpRrtTUu",
    long=_long_options(
        "user:u group:g preserve-env:E login:i shell:s set-home:H non-interactive:n background:b"
        " stdin:S chdir:D close-from:C host:h prompt:p command-timeout:T"
    ),
)
_DOAS = _Grammar(flags="Lns", values="aCu")
_PLAIN = _Grammar(flags="")
_SETPRIV = _Grammar(
    flags="d",
    long=_long_options(
        "reset-env no-new-privs nnp init-groups clear-groups keep-groups dump reuid= regid= ruid="
        " euid= rgid= egid= groups= inh-caps= ambient-caps= bounding-set= securebits= pdeathsig="
    ),
)
_CHROOT = _Grammar(flags="", long=_long_options("userspec= groups= skip-chdir"))
_CAPSH = _Grammar(
    flags="",
    long=_long_options(
        "drop= user= uid= gid= groups= caps= inh= addamb= delamb= keep= secbits= iab= mode= shell="
        " noamb print current noenv quiet strict no-new-privs"
    ),
)
_GRAMMARS = {
    "su": _SU,
    "runuser": _SU,
    "sudo": _SUDO,
    "doas": _DOAS,
    "gosu": _PLAIN,
    "su-exec": _PLAIN,
    "s6-setuidgid": _PLAIN,
    "setpriv": _SETPRIV,
    "chroot": _CHROOT,
    "capsh": _CAPSH,
}
#: The names of these programs.
PROGRAMS = frozenset(_GRAMMARS)


def user_change(words: Sequence[Word], index: int) -> UserChange | None:
    """Return what the program at `index` does; None if it is another, or its words are unclear."""
    program = basename(words[index] or "")
    grammar = _GRAMMARS.get(program)
    read = None if grammar is None else _read(words, index + 1, grammar)
    if read is None:
        return None
    if program in _BY_OPTIONS:
        return _BY_OPTIONS[program](words, read)
    if program in ("sudo", "doas"):
        return _sudo(program, words, read)
    return _su(program, words, read) if grammar is _SU else _by_operands(program, words, read)


def _su(program: str, words: Sequence[Word], read: _Read) -> UserChange:
    options, operands = read
    if "u" in options:  # runuser -u USER COMMAND
        command = next(iter(operands), None)
        return UserChange(options["u"], _described(program, options["u"]), command)
    login = "l" in options or any(words[index] == "-" for index in operands)
    names = [words[index] for index in operands if words[index] != "-"]
    user = names[0] if names else "root"
    return UserChange(
        user,
        _described(f"{program} -" if login else program, user),
        script=options.get("c"),
        drops_env=login,
        keeps=tuple((options.get("w") or "").split(",")),
    )


def _sudo(program: str, words: Sequence[Word], read: _Read) -> UserChange:
    options, operands = read
    command, assigned = None, []
    for index in operands:
        if "=" not in (words[index] or ""):
            command = index
            break
        assigned.append(words[index])
    user = options.get("u", "root")
    preserved = options.get("E")
    return UserChange(
        user,
        _described(f"{program} -u", user) if "u" in options else program,
        command,
        drops_env=preserved != "" or "i" in options,
        keeps=tuple((preserved or "").split(",")),
        assignments=tuple(assigned),
    )


def _by_operands(program: str, words: Sequence[Word], read: _Read) -> UserChange | None:
    if not read.operands:
        return None
    first = read.operands[0]
    user = words[first]
    return UserChange(user, _described(program, user), next(iter(read.operands[1:]), None))


def _setpriv(_: Sequence[Word], read: _Read) -> UserChange:
    options = read.options
    user = options.get("reuid=", options.get("euid=", "root"))
    if "ambient-caps=" in options:  # it may keep IPC_LOCK
        user = "root"
    return UserChange(
        user,
        _described("setpriv --reuid", user),
        next(iter(read.operands), None),
        drops_env="reset-env" in options,
        drops_ipc_lock=_drops_ipc_lock(options.get("bounding-set="), "-"),
    )


def _chroot(_: Sequence[Word], read: _Read) -> UserChange:
    user = read.options.get("userspec=", "root")
    command = next(iter(read.operands[1:]), None)
    return UserChange(user, _described("chroot --userspec", user), command)


def _capsh(words: Sequence[Word], read: _Read) -> UserChange:
    """Return what capsh does before bash, whose arguments follow `--`."""
    options, arguments = read.options, [words[index] for index in read.operands]
    user = options.get("user=", options.get("uid=", "root"))
    if "addamb=" in options:  # it may keep IPC_LOCK
        user = "root"
    dropped = options.get("drop=")
    is_script = len(arguments) > 1 and (arguments[0] or "").endswith("c")
    return UserChange(
        user,
        _described("capsh --drop", dropped) if dropped else _described("capsh --user", user),
        script=arguments[1] if is_script else None,
        drops_ipc_lock=_drops_ipc_lock(dropped, ""),
    )


def _drops_ipc_lock(capabilities: Word, sign: str) -> bool:
    """Return whether a list of capabilities, each after a sign, has IPC_LOCK."""
    names = (capabilities or "").lower().replace("cap_", "").split(",")
    return f"{sign}ipc_lock" in names or (f"{sign}all" in names and "+ipc_lock" not in names)


_BY_OPTIONS = {"setpriv": _setpriv, "chroot": _chroot, "capsh": _capsh}


def _described(program: str, user: Word) -> str:
    return f"{program} {user:.40}" if user else program


def _read(words: Sequence[Word], index: int, grammar: _Grammar) -> _Read | None:
    """Read options as getopt_long does; return None at an unknown option or word."""
    options: dict[str, Word] = {}
    operands: list[int] = []
    while index < len(words):
        word = words[index]
        if word is None:
            return None
        if word == "--":
            operands += range(index + 1, len(words))
            break
        if word[:1] != "-" or word == "-":
            operands.append(index)
            index += 1
            if not grammar.permutes:
                operands += range(index, len(words))
                break
            continue
        option = _option(word, words[index + 1 : index + 2], grammar)
        if option is None:
            return None
        options.update(option.options)
        index += option.length
    return _Read(options, tuple(operands))


class _Option(NamedTuple):
    options: dict[str, Word]
    length: int  #: the number of its words


def _option(word: str, following: Sequence[Word], grammar: _Grammar) -> _Option | None:
    return _long(word, following, grammar) if word[:2] == "--" else _short(word, following, grammar)


def _long(word: str, following: Sequence[Word], grammar: _Grammar) -> _Option | None:
    name, equals, value = word[2:].partition("=")
    key = grammar.long.get(name)
    if key is None:
        return None
    takes_value = key in grammar.values if len(key) == 1 else key.endswith("=")
    if equals:
        return _Option({key: value}, 1)
    if not takes_value:
        return _Option({key: ""}, 1)
    return _Option({key: following[0]}, 2) if following else None


def _short(word: str, following: Sequence[Word], grammar: _Grammar) -> _Option | None:
    options: dict[str, Word] = {}
    for index, letter in enumerate(word[1:], 2):
        if letter in grammar.flags:
            options[letter] = ""
        elif letter not in grammar.values:
            return None
        elif word[index:]:
            return _Option({**options, letter: word[index:]}, 1)
        elif following:
            return _Option({**options, letter: following[0]}, 2)
        else:
            return None
    return _Option(options, 1)
