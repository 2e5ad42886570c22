"""On a real NVIDIA GPU: the remap's script, NCCL's settings, pinned memory and CUDA's handles.

`make test-gpu` runs them as root on a machine with the driver and NCCL. CI has no GPU. They need no
RDMA device. docs/evidence.md has the results.
"""
