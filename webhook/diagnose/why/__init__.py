"""The explanation why a pod has RDMA, or has not, from the evidence about it.

`collector` reads a cluster and `file_collector` files; all other modules are pure. `evidence` has
the facts, a module for each chapter turns them into sentences, and `answer` combines them.
`webhook.diagnose.codes` has the meaning of reason codes. Start with `answer`.
"""
