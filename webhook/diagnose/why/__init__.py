"""Why a pod has RDMA, or has not: from what is known about it to an explanation.

`collector` reads a cluster and `file_collector` files; all else is pure. `evidence` has the facts,
one module for each chapter turns them into sentences, and `answer` puts them together. What a
reason code means is in `webhook.diagnose.codes`. Start with `answer`.
"""
