"""The remap: `remap.sh`, a POSIX shell script that limits CUDA to the container's own GPUs.

A privileged container can access every GPU of its node, which NVLink between pods needs. Unless
each sets its own CUDA_VISIBLE_DEVICES, two such pods would compute on the same GPU. Only the
running container can find out its GPUs, so the script runs there, in front of the user's command:

    command: [/bin/sh, -c, SCRIPT, rdma-remap, "<GPUs of the container>", <the user's words>…]

The script lists all GPUs with nvidia-smi, sorts them by PCI domain:bus:device and sets
CUDA_VISIBLE_DEVICES to the positions of the container's own in that order, with
CUDA_DEVICE_ORDER=PCI_BUS_ID. It uses integers, not UUIDs, since vLLM, Ray and DeepSpeed call
int() on them. The device minor and the index within the container are not CUDA ordinals. The
container's own GPUs come from the first of these sources that lists them:

1. NVIDIA_VISIBLE_DEVICES, unless it is void, all, none or a path. An index may also come from
   the image, so it counts only if 3 confirms it;
2. /var/run/nvidia-container-devices, the device plugin's `volume-mounts` strategy;
3. /proc/driver/nvidia/gpus, if it lists fewer GPUs than /dev and nvidia-smi do: the legacy
   container runtime masks it, even for privileged containers. If it is masked, 1 and 2 must
   agree with it;
4. the container's request, if it is for all GPUs of the node.

Any doubt ends the container with a message, since wrong GPUs are worse than none: another number
of GPUs, an unknown name, a GPU in MIG mode (which renumbers CUDA's devices), CUDA_VISIBLE_DEVICES
already set, or no nvidia-smi.

The kubelet expands `$$` and `$(NAME)` in `command`, so the script contains neither `$$` nor `$(`
(third_party/forked/golang/expansion). It uses functions because backticks do not nest. All
variables except the two exported ones exist only in the subshell of `own`. The script needs
nvidia-smi, sort, tr and cat. It was tested under dash, bash and busybox, on at most one real GPU.

Sources: libnvidia-container nvc_mount.c (masking); open-gpu-kernel-modules (minor);
nvidia-container-toolkit 1.18 (`void` under CDI); CUDA C++ Programming Guide,
environment variables (order, truncation at an invalid entry).
"""

from __future__ import annotations

from importlib.resources import files

from webhook.decide.shell.argv import REMAP, REMAP_SHELL

_TEMPLATE = files(__package__).joinpath("remap.sh").read_text(encoding="utf-8")


def script(root: str = "") -> str:
    """Return the script for a file system with the root `root`, as in a test."""
    return _TEMPLATE.replace("@ROOT@", root)


SCRIPT = script()


def wrapping(gpus: int) -> tuple[str, ...]:
    """Return the words to put in front of the command of a container with `gpus` GPUs."""
    return (*REMAP_SHELL, SCRIPT, REMAP, str(gpus))
