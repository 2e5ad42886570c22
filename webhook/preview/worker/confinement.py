"""What the worker gives up before its first request, for as long as it lives.

It has no descriptor to spare, so it opens no file (a ServiceAccount's token lies in one) and
no socket, and starts no program that could speak for it. Everything that it will need is
imported before.
"""

from __future__ import annotations

import ctypes
import os
import resource
import signal
import sys

#: The Deployment's limit is 512 MiB, beyond which the kernel ends the whole pod; the server
#: itself stays below 300.
ADDRESS_SPACE = 192 << 20
#: Of processor time for one request, should nobody be left who ends it by the clock.
SECONDS = 15
#: prctl(2), from linux/prctl.h.
_SET_PDEATHSIG, _SET_DUMPABLE, _SET_NO_NEW_PRIVS = 1, 4, 38

#: Each is soft and hard, so that there is no way back. Not even a descriptor that was closed can
#: be opened again: what counts is its number. RLIMIT_NPROC means nothing to root.
_LIMITS = {
    resource.RLIMIT_AS: ADDRESS_SPACE,
    resource.RLIMIT_CORE: 0,
    resource.RLIMIT_FSIZE: 0,
    resource.RLIMIT_NOFILE: 0,
    resource.RLIMIT_NPROC: 0,
}


def confine() -> None:
    """Give it up; OSError or ValueError where the system does not let us.

    On other systems than Linux, where at most `serve --dev` runs, nothing is given up.
    """
    if sys.platform != "linux":
        return
    _prctl(_SET_PDEATHSIG, signal.SIGKILL)
    _prctl(_SET_DUMPABLE, 0)
    _prctl(_SET_NO_NEW_PRIVS, 1)
    for which, most in _LIMITS.items():
        resource.setrlimit(which, (most, most))


def allow_seconds(seconds: int = SECONDS) -> None:
    """Let the process be ended when it has computed for so long from now on."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    _, hard = resource.getrlimit(resource.RLIMIT_CPU)
    until = int(used.ru_utime + used.ru_stime) + seconds
    if hard == resource.RLIM_INFINITY or until < hard:
        resource.setrlimit(resource.RLIMIT_CPU, (until, hard))


def _prctl(option: int, value: int) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    unused = ctypes.c_ulong(0)
    if libc.prctl(option, ctypes.c_ulong(value), unused, unused, unused) != 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
