"""Issue, rotate and serve the certificates of a webhook.

`issue` makes CAs and leaves, `rotation` replaces a CA step by step, `keeper` does one round of
maintenance and `self_managed` repeats it, `serving` has the TLS contexts. All reads and writes in
a cluster go through `installation.Api`, which the caller implements: nothing here depends on
pods, a Kubernetes client, or `webhook`. Start with `self_managed`.
"""
