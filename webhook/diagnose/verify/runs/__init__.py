"""Runs between the nodes of a fabric, by pods that the webhook equips like all others.

`plan` says who measures with whom, `pods` and `pair.sh` how, `run` does it, `pair_output` and
`errors` read what the pods printed. `nccl_job` and `nccl_run` do the same with nccl-tests. The
results are graded in `webhook.diagnose.verify`. The pods of nccl-tests run `launch.sh` and
`work.sh`. Start with `run`.
"""
