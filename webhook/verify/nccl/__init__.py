"""A run of nccl-tests over the nodes of a fabric, as an MPIJob that the webhook equips."""
