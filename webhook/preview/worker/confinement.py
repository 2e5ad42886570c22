"""The permanent restrictions of the worker, set before its first request.

The worker may not open another descriptor, so it cannot open a file (such as the ServiceAccount's
token) or a socket, and as a non-root user it cannot start a process. Every module that it needs is
imported before.
"""

from __future__ import annotations

import ctypes
import os
import resource
import signal
import sys

#: The Deployment's memory limit is 1 GiB, beyond which the kernel kills the whole pod; the server
#: itself uses less than 450 MiB.
MAX_ADDRESS_SPACE = 192 << 20
#: Processor time for one request, in case no server is left to end it after its timeout.
MAX_CPU_SECONDS = 15
#: prctl(2), from linux/prctl.h.
_SET_PDEATHSIG, _SET_DUMPABLE, _SET_NO_NEW_PRIVS = 1, 4, 38

#: The soft and hard limits: equal, so they cannot be raised again. RLIMIT_NOFILE limits the numbers
#: of descriptors, so not even a closed one can be reopened. RLIMIT_NPROC has no effect on root.
_LIMITS = {
    resource.RLIMIT_AS: MAX_ADDRESS_SPACE,
    resource.RLIMIT_CORE: 0,
    resource.RLIMIT_FSIZE: 0,
    resource.RLIMIT_NOFILE: 0,
    resource.RLIMIT_NPROC: 0,
}


def confine() -> None:
    """Apply all restrictions; OSError or ValueError if the system does not allow one.

    Do nothing on systems other than Linux, which are expected to run only `serve --dev`.
    """
    if sys.platform != "linux":
        return
    _prctl(_SET_PDEATHSIG, signal.SIGKILL)
    _prctl(_SET_DUMPABLE, 0)
    _prctl(_SET_NO_NEW_PRIVS, 1)
    for limit, maximum in _LIMITS.items():
        resource.setrlimit(limit, (maximum, maximum))


def limit_cpu_seconds(seconds: int = MAX_CPU_SECONDS) -> None:
    """Let the kernel end the process after `seconds` more seconds of processor time."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    _, hard = resource.getrlimit(resource.RLIMIT_CPU)
    until = int(used.ru_utime + used.ru_stime) + seconds
    if hard == resource.RLIM_INFINITY or until < hard:
        resource.setrlimit(resource.RLIMIT_CPU, (until, hard))


def _prctl(option: int, argument: int) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    unused = ctypes.c_ulong(0)
    if libc.prctl(option, ctypes.c_ulong(argument), unused, unused, unused) != 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
