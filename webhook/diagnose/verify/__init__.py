"""Grades for the speed of a network, from measurements.

`grade` grades a run by itself and `outliers` compares it with others, `evaluate` combines files,
`fault_localization` searches for the common factor of bad results, `matrix` and the outputs show
the results. `runs` measures with pods. The output of benchmarks is read in
`webhook.diagnose.tools.benchmarks`. `results` has the limits of a good link (`OK_SHARE`,
`WARNING_SHARE`), and `codes` collects the codes of all findings. Start with `evaluate`.
"""
