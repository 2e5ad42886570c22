"""From what tools printed on nodes to a fabrics file, and what fits it.

`inputs` reads texts, `node` and `ports` put together what they say of one node, `groups` makes
fabrics of equal nodes, `plan` makes the entries of the file with a reason for each field, and
`checks` finds what is wrong. `fabrics_yaml`, `plugin`, `output`, `svg` and `page` show the result.
How a tool's output is read is in `webhook.diagnose.tools`. `collect.sh` runs on a node and
`daemonset.yaml` on all; a check is a function in `checks`, listed in `_CHECKS`. Start with
`discovery`.
"""
