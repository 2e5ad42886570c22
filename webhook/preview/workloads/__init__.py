"""Documents with pod templates: the templates, and whether their pods opt in.

`templates` finds them by their shape, `controllers` predicts the controllers' additions to the
pods, `hints` explains why a pod would not be equipped, `patch` writes a decision back into the
template. The pods are decided on in `webhook.preview.dry_run`.
`manifests/base/admission/advice.yaml` lists the kinds for the API server. Start with `templates`.
"""
