"""The report of a dry run, and its two forms.

`record` has the values, which are the only input of the forms: `json` for programs, `text` for
people. What happens to a pod is decided before, in `webhook.preview.dry_run`; `-o yaml` and
`-o diff` are in `webhook.preview.writers`. Start with `record`.
"""
