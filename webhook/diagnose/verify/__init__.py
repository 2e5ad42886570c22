"""Grades for the speed of a network, from measurements.

`grade` grades a run by itself and compares it with others, `evaluate` combines files,
`fault_localization` finds what bad results have in common, `matrix` and the outputs show it. `runs`
measures with pods. The output of benchmarks is read in `webhook.diagnose.tools.benchmarks`.
`results` has the limits of a good link (`PASS`, `WARN`). Start with `evaluate`.
"""
