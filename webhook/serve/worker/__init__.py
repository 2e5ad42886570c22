"""The server's side of the process that computes previews: it gives turns and ends the process."""
