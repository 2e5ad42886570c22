"""Whether a network is as fast as it should be: from measurements to verdicts.

`grade` grades a run on its own and compares it with others, `evaluate` puts files together,
`fault_localization` finds what bad results have in common, `matrix` and the outputs show it. `runs`
measures with pods. What benchmarks print is read in `webhook.diagnose.tools.benchmarks`. `results`
has the limits of a good link (`PASS`, `WARN`). Start with `evaluate`.
"""
