"""What a process that serves asks of its system before it begins.

Each is left as it is where the system does not have it.
"""

from __future__ import annotations

import ctypes
import resource
from collections.abc import Callable
from contextlib import suppress

#: Enough where the system sets no bound.
_MANY = 1 << 20
_PR_SET_DUMPABLE = 4  # linux/prctl.h
#: malloc.h: M_MMAP_THRESHOLD, M_TRIM_THRESHOLD, M_ARENA_MAX.
_MALLOC = {-3: 128 << 10, -1: 128 << 10, -8: 2}


def raise_descriptors() -> None:
    """Allow as many open files as may be."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with suppress(OSError, ValueError):  # macOS says "infinity", and refuses it
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def keep_memory_private() -> None:
    """Let no core file hold a key, and no other process of this user read our memory.

    The kernel writes no core of who is not dumpable, whatever the limit, and lets nobody but root
    trace it (prctl(2), PR_SET_DUMPABLE). A program that is started from here is dumpable again.
    """
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    _libc("prctl")(_PR_SET_DUMPABLE, 0, 0, 0, 0)


def return_memory() -> None:
    """Have glibc give large blocks back as soon as they are free, and keep few for threads.

    A connection's buffer of 256 KiB would come from the heap as soon as the first was freed
    (mallopt(3), M_MMAP_THRESHOLD), and pages of the heap that were written once stay.
    """
    mallopt = _libc("mallopt")
    for parameter, value in _MALLOC.items():
        mallopt(parameter, value)


def trim_memory() -> None:
    """Give free pages of the heap back to the system (malloc_trim(3)): some milliseconds."""
    _libc("malloc_trim")(0)


def _libc(name: str) -> Callable[..., int]:
    """Return a function of the C library; one that does nothing where it has none."""
    function: Callable[..., int] = getattr(ctypes.CDLL(None), name, lambda *_: 0)
    return function


def descriptors() -> int:
    """Return how many files may be open."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return _MANY if soft == resource.RLIM_INFINITY else soft
