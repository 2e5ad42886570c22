"""Whether a network is as fast as it should be: from measurements to verdicts.

`tools.benchmarks` reads what benchmarks print. Here, `grade` grades a run on its own and compares
it with others, `evaluate` puts files together; the rest shows the result.
"""
