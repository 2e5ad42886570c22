"""Whether a network is as fast as it should be: from measurements to verdicts.

`webhook.diagnose.tools.benchmarks` reads what benchmarks print. Here, `judging` judges a run on its own,
`peers` compares it with others, `assessment` puts files together; the rest shows the result.
"""
