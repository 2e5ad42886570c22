"""What a machine and its libraries say about RDMA; nothing here knows a pod or Kubernetes.

`readers` and `benchmarks` read the output of programs, `transcripts` says from which machine a line
is, `causes` and `logs` know what libraries log, `hardware` and `products` name cards and machines.
The results are the records of `observations`, without interpretation: that is the business of the
rooms above. A tool and a benchmark each have a reader; `transcripts` has a file for each way in
which saved text names its nodes. Start with `observations`, then `readers`.
"""
