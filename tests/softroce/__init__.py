"""Real RDMA without a card: soft-RoCE (rdma_rxe) in a machine that QEMU emulates.

The kernel of a container's host may have no InfiniBand; Debian's own kernel has it, and QEMU boots
that one without any right on the host. `make experiments` runs everything here. It is not part of
`make test`: it emulates each instruction, so it takes minutes.
"""
