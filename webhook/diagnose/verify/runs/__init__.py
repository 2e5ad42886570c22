"""Runs of perftest between the nodes of a fabric, by pods that the webhook equips like all others.

`fabric_nodes` and `pairings` say who measures with whom, `run_pods` and `pair.sh` how, `node_run`
does it, and `pair_judging` judges what the pods printed.
"""
