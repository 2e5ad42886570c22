"""Runs between the nodes of a fabric, in pods that the webhook equips like all others.

`plan` chooses the pairs of nodes, `pods` and `pair.sh` define their pods, `run` creates them,
`pair_output` and `errors` read their output. `nccl_job` and `nccl_run` do the same with nccl-tests,
whose pods run `launch.sh` and `work.sh`. The results are graded in `webhook.diagnose.verify`. Start
with `run`.
"""
