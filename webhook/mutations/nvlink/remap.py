"""The remap: `remap.sh`, a POSIX shell script that shows CUDA only the container's own GPUs.

A privileged container reaches every GPU of its node, which NVLink between pods
needs; without a CUDA_VISIBLE_DEVICES of their own two such pods would compute on
the same GPU. Only the running container can know its GPUs, so the script runs
there, in front of the user's command:

    command: [/bin/sh, -c, SCRIPT, rdma-remap, "<GPUs of the container>", <the user's words>…]

It asks nvidia-smi for all GPUs, sorts them by PCI domain:bus:device and takes
the ranks of its own as ordinals, with CUDA_DEVICE_ORDER=PCI_BUS_ID. Integers,
not UUIDs, since vLLM, Ray and DeepSpeed call int() on them. The device minor and
the index within the container are no CUDA ordinals. Its own are told by the first
of these that says anything:

1. NVIDIA_VISIBLE_DEVICES, unless void, all, none or a path. An index may also come
   from the image, so it counts only where 3 confirms it;
2. /var/run/nvidia-container-devices, the device plugin's `volume-mounts` strategy;
3. /proc/driver/nvidia/gpus, if it shows fewer GPUs than /dev and nvidia-smi do: the
   legacy container runtime masks it, also for privileged containers. Where it is
   masked, 1 and 2 must agree with it;
4. the container requests all GPUs of the node.

Any doubt (another count, an unknown name, a GPU in MIG mode, which renumbers CUDA's
devices, CUDA_VISIBLE_DEVICES set already, no nvidia-smi) ends the container with a
message: wrong GPUs are worse than none.

The kubelet expands `$$` and `$(NAME)` in `command`, so the script has neither `$$`
nor `$(` (third_party/forked/golang/expansion); backticks do not nest, hence the
functions. All but the two exported names live in the subshell of `own`. It needs
nvidia-smi, sort, tr and cat, and ran under dash, bash and busybox; never on real GPUs.

Sources: libnvidia-container nvc_mount.c (masking); open-gpu-kernel-modules (minor);
nvidia-container-toolkit 1.18 (`void` under CDI); CUDA C++ Programming Guide,
environment variables (order, truncation at an invalid entry).
"""

from __future__ import annotations

from importlib.resources import files

from webhook.shelltext.argv import REMAP, REMAP_SHELL

_TEMPLATE = files(__package__).joinpath("remap.sh").read_text(encoding="utf-8")


def script(root: str = "") -> str:
    """Write the script for a file system that begins at `root` (a test's own, say)."""
    return _TEMPLATE.replace("@ROOT@", root)


SCRIPT = script()


def wrapping(gpus: int) -> tuple[str, ...]:
    """Return the words to put in front of the command of a container with that many GPUs."""
    return (*REMAP_SHELL, SCRIPT, REMAP, str(gpus))
