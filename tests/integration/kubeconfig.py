"""The kubeconfig of an API server of our own on this machine."""

#: `%` its port.
KUBECONFIG = """\
apiVersion: v1
kind: Config
clusters: [{name: c, cluster: {server: "http://127.0.0.1:%d"}}]
users: [{name: u, user: {token: hunter2}}]
contexts: [{name: x, context: {cluster: c, user: u}}]
current-context: x
"""
