"""The report of a dry run, and its two forms.

`record` has the values, the only input of the forms: `json` for programs, `text` for people. The
decisions come from `webhook.preview.dry_run`; `-o yaml` and `-o diff` are in
`webhook.preview.writers`. Start with `record`.
"""
