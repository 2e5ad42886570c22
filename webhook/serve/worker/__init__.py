"""The server's side of the process that computes previews.

`queue` gives requests their turns, with limits for each address; `supervisor` starts the process,
sends requests to it, and ends it if it does not answer. The program of the process is
`webhook.preview.worker`. Start with `supervisor`.
"""
