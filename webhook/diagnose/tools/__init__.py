"""Readers for the output of RDMA tools, benchmarks and libraries, independent of Kubernetes.

`readers` and `benchmarks` read the output of programs, `transcripts` assigns lines to nodes,
`causes` and `logs` recognise log lines of libraries, `hardware` and `products` identify cards and
machine types. The results are the records of `observations`; the rooms above interpret them. Each
tool and each benchmark has a reader, and each notation of node names in saved text has a file in
`transcripts`. Start with `observations`, then `readers`.
"""
