"""The server's side of the process that computes previews: whose turn it is, and its end."""
