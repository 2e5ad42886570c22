"""The arguments of `why`: codes, pods and controllers, written as for kubectl."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from webhook.diagnose.why.workload_kinds import POD_WORDS, WorkloadKind, kinds_of, kinds_or_error
from webhook.errors import DocumentError


class NamedWorkload(NamedTuple):
    """A pod, or a controller."""

    #: The name as written, or KIND/NAME: for messages. If there is no such pod, it may be a code in
    #: lower case.
    written_name: str
    name: str
    #: The kinds that it may have, in all versions; () for a pod.
    kinds: tuple[WorkloadKind, ...] = ()


def read_words(words: Sequence[str]) -> tuple[list[str], list[NamedWorkload]]:
    """Return the codes and the workloads; raise DocumentError for an unknown kind.

    `KIND NAME…` is as for kubectl. Otherwise a word with a slash is KIND/NAME, a word with capitals
    is a code, and any other word a pod.
    """
    if len(words) > 1 and _is_kind(words[0]) and not any("/" in word for word in words):
        return [], [_named_workload(words[0], name) for name in words[1:]]
    codes = [word for word in words if word != word.lower() and "/" not in word]
    return codes, [_read(word) for word in words if word not in codes]


def _is_kind(word: str) -> bool:
    return word.lower() in POD_WORDS or bool(kinds_of(word))


def _read(word: str) -> NamedWorkload:
    if "/" not in word:
        return NamedWorkload(word, word)
    kind, _, name = word.partition("/")
    if not name or "/" in name:
        raise DocumentError(f"{word!r:.80} is not of the form KIND/NAME")
    return _named_workload(kind, name)


def _named_workload(kind: str, name: str) -> NamedWorkload:
    kinds = () if kind.lower() in POD_WORDS else kinds_or_error(kind)
    return NamedWorkload(f"{kind}/{name}", name, kinds)
