"""Readers for the output of RDMA tools, benchmarks and libraries, independent of Kubernetes.

`readers` and `benchmarks` read the output of programs, `transcripts` assigns lines to nodes,
`known_lines` and `logs` recognize log lines of libraries, `hardware` and `products` identify cards
and machine types. The results are the records of `observations`; the packages above them interpret
them. Each tool and each benchmark has a reader; `transcripts` has a finder for each notation of
node names in saved text. Start with `observations`, then `readers`.
"""
