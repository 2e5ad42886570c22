"""The process that computes previews for anonymous callers: it can only read and write bytes.

`__main__` is its program, `confinement` its restrictions, `frames` its protocol, `operations` its
work. It loads no server, no TLS, no keys and no client of a cluster; the server's side is
`webhook.serve.worker_supervisor`. Start with `__main__`.
"""
