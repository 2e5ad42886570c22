"""The kubeconfig for a fake API server on this machine."""

#: `KUBECONFIG % port` is its text.
KUBECONFIG = """\
apiVersion: v1
kind: Config
clusters: [{name: c, cluster: {server: "http://127.0.0.1:%d"}}]
users: [{name: u, user: {token: hunter2}}]
contexts: [{name: x, context: {cluster: c, user: u}}]
current-context: x
"""
