"""A fabrics file from the output of tools on nodes, and the files that go with it.

`inputs` reads texts. `node` and `ports` merge the observations of one node. `groups` makes fabrics
of equal nodes, `plan` makes the entries of the file with a reason for each field, and `checks`
finds faults, and `marks` what these name in a picture. `fabrics_yaml`, `plugin`, `output`, `svg`
and `page` write the result.
`webhook.diagnose.tools` reads the output of each tool. `collect.sh` runs on a node and
`daemonset.yaml` on all. A check is a function in `checks` or `port_checks`, listed in `_CHECKS` or
called where they are run, with the `Code` of its findings next to it, which `codes` collects. Start
with `discovery`.
"""
