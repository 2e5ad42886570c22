"""CUDA's driver API and NCCL, as a program: `python -m tests.gpu.cuda uuids`.

uuids             print the UUID of each device, in CUDA's order
pin MIB           allocate and fill pinned memory on the host, and copy it to the GPU
offer FILE        write the handle of memory on the GPU to FILE, and wait until FILE is gone
open FILE         print the number in the memory of that handle
dma-buf           export memory on the GPU for other devices
nccl              create a communicator of one rank

Memory of a GPU is written as one number of eight bytes. An error ends the program with CUDA's or
NCCL's code.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from ctypes import CDLL, Structure, byref, c_char, c_int, c_size_t, c_uint64, c_void_p, memset
from pathlib import Path
from typing import Any
from uuid import UUID

NUMBER = 20
_PAGE_BYTES = 2 << 20


class _Uuid(Structure):
    _fields_ = (("octets", c_char * 16),)


class _Handle(Structure):
    """CUipcMemHandle."""

    _fields_ = (("octets", c_char * 64),)


def _call(function: Any, *arguments: object) -> None:
    code = function(*arguments)
    if code:
        sys.exit(f"{function.__name__}: {code}")


def _write(result: object) -> None:
    sys.stdout.write(f"{result}\n")


def _driver() -> CDLL:
    """Return the driver, initialized."""
    cuda = CDLL("libcuda.so.1")
    _call(cuda.cuInit, 0)
    return cuda


def _on_first_device() -> CDLL:
    """Return the driver, with a context on the first device."""
    cuda, context = _driver(), c_void_p()
    _call(cuda.cuDevicePrimaryCtxRetain, byref(context), 0)
    _call(cuda.cuCtxSetCurrent, context)
    return cuda


def _allocate(cuda: CDLL, octets: int) -> c_uint64:
    address = c_uint64()
    _call(cuda.cuMemAlloc_v2, byref(address), c_size_t(octets))
    return address


def _uuids() -> None:
    cuda, count = _driver(), c_int()
    _call(cuda.cuDeviceGetCount, byref(count))
    for device in range(count.value):
        uuid = _Uuid()
        _call(cuda.cuDeviceGetUuid_v2, byref(uuid), device)
        _write(f"GPU-{UUID(bytes=bytes(uuid))}")


def _pin(mebibytes: str) -> None:
    cuda, octets, pinned = _on_first_device(), int(mebibytes) << 20, c_void_p()
    _call(cuda.cuMemHostAlloc, byref(pinned), c_size_t(octets), 0)
    memset(pinned, 1, octets)
    _call(cuda.cuMemcpyHtoD_v2, _allocate(cuda, octets), pinned, c_size_t(octets))
    _write("pinned")


def _offer(file: str) -> None:
    cuda, number, handle = _on_first_device(), c_uint64(NUMBER), _Handle()
    address = _allocate(cuda, _PAGE_BYTES)
    _call(cuda.cuMemcpyHtoD_v2, address, byref(number), c_size_t(8))
    _call(cuda.cuIpcGetMemHandle, byref(handle), address)
    Path(f"{file}.new").write_bytes(bytes(handle))
    Path(f"{file}.new").rename(file)
    while Path(file).exists():
        time.sleep(0.05)


def _open(file: str) -> None:
    cuda, number, address = _on_first_device(), c_uint64(), c_uint64()
    handle = _Handle.from_buffer_copy(Path(file).read_bytes())
    _call(cuda.cuIpcOpenMemHandle_v2, byref(address), handle, 1)
    _call(cuda.cuMemcpyDtoH_v2, byref(number), address, c_size_t(8))
    _write(number.value)


def _dma_buf() -> None:
    cuda, descriptor = _on_first_device(), c_int(-1)
    address = _allocate(cuda, _PAGE_BYTES)
    size = c_size_t(_PAGE_BYTES)
    _call(cuda.cuMemGetHandleForAddressRange, byref(descriptor), address, size, 1, c_uint64(0))
    _write(Path(f"/proc/self/fd/{descriptor.value}").readlink())


def _nccl() -> None:
    nccl, communicator = CDLL("libnccl.so.2"), c_void_p()
    _call(nccl.ncclCommInitAll, byref(communicator), 1, (c_int * 1)(0))
    _call(nccl.ncclCommDestroy, communicator)
    _write("communicator")


_COMMANDS: dict[str, Callable[..., None]] = {
    "uuids": _uuids,
    "pin": _pin,
    "offer": _offer,
    "open": _open,
    "dma-buf": _dma_buf,
    "nccl": _nccl,
}

if __name__ == "__main__":
    _COMMANDS[sys.argv[1]](*sys.argv[2:])
