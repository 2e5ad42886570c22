"""The explanation why a pod has or lacks RDMA, from the evidence about it.

`collector` reads a cluster, with `pending_reads`, `workload_reads`, `admission_reads` and
`config_map_reads`, and `file_collector` files; all other modules are pure. `evidence` has the
facts, a module for each chapter turns them into findings, and `answer` combines them.
`code_output` writes the meaning of codes, which `webhook.diagnose.codes` collects from all tools.
Start with `answer`.
"""
