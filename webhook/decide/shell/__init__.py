"""Shell scripts as text: find their commands without running anything.

`grammar`, `operators`, `compound` and `constructs` split a script into commands, `words` and
`expansions` read their words, and `scripts` returns the commands with offsets, so that words can be
inserted. Nothing here depends on MPI or pods. Start with `scripts`.
"""
