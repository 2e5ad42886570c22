"""The process that computes previews for anonymous callers: it can only read and write bytes."""
