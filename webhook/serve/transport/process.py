"""Settings of the operating system for the serving process.

Settings that the system lacks are skipped.
"""

from __future__ import annotations

import ctypes
import gc
import resource
from collections.abc import Callable
from contextlib import suppress

#: The number of open files without a limit of the system.
_UNLIMITED = 1 << 20
_PR_SET_DUMPABLE = 4  # linux/prctl.h
#: Thresholds of the collector: every request reaches Python's default, 700 new objects, twice.
_COLLECT_AFTER = (50_000, 20, 100)
#: malloc.h: M_MMAP_THRESHOLD, M_TRIM_THRESHOLD, M_ARENA_MAX.
_MALLOC = {-3: 128 << 10, -1: 128 << 10, -8: 2}


def raise_descriptors() -> None:
    """Allow as many open files as the system permits."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with suppress(OSError, ValueError):  # macOS reports "infinity", but does not accept it
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def keep_memory_private() -> None:
    """Write no core file, which would hold keys, and let no process of this user read the memory.

    The kernel writes no core file of a process that is not dumpable, whatever the limit, and only
    root may trace it (prctl(2), PR_SET_DUMPABLE). Programs that it starts are dumpable again.
    """
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    _libc("prctl")(_PR_SET_DUMPABLE, 0, 0, 0, 0)


def configure_malloc() -> None:
    """Have glibc return large blocks as soon as they are free, and limit the arenas of threads.

    By default, once the first buffer of 256 KiB of a connection has been freed, later ones come
    from the heap (mallopt(3), M_MMAP_THRESHOLD), whose written pages are not returned.
    """
    mallopt = _libc("mallopt")
    for parameter, value in _MALLOC.items():
        mallopt(parameter, value)


def collect_garbage_rarely() -> None:
    """Exempt all present objects from Python's collector, and run it only after many new ones.

    A review makes thousands of objects without cycles, which are freed right after its answer.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(*_COLLECT_AFTER)


def trim_memory() -> None:
    """Return free pages of the heap to the system (malloc_trim(3)): takes some milliseconds."""
    _libc("malloc_trim")(0)


def _libc(name: str) -> Callable[..., int]:
    """Return a function of the C library, or one that does nothing if the library lacks it."""
    function: Callable[..., int] = getattr(ctypes.CDLL(None), name, lambda *_: 0)
    return function


def max_descriptors() -> int:
    """Return the maximum number of open files."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return _UNLIMITED if soft == resource.RLIM_INFINITY else soft
