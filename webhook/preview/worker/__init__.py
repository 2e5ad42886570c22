"""The process beside the server that computes for strangers: bytes in, bytes out, and no more."""
