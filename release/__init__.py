"""`make release VERSION=X.Y.Z`: everything that a release publishes, in `dist/`.

All files are made from the committed state (`git archive`), so nothing else in the checkout can get
into them, and with the time of the commit instead of the current time, so two builds of a commit
give the same bytes. docs/air-gap.md lists the files.
"""
