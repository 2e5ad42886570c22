"""The HTTP endpoints: `/mutate`, `/validate`, `/preview`, health and metrics, all ASGI callables.

`mutate` and `validate` serve the API server, `preview` people, `apps` the kubelet and Prometheus;
`page` has the files that a browser gets, and `asgi` reads bodies within limits. AdmissionReviews
are read and written in `webhook.admission`.
Start with `mutate`.
"""
