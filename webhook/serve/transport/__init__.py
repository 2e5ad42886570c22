"""The layer below HTTP: connections, their memory, and bounds on requests.

These classes extend uvicorn's and uvloop's, also private ones, so both versions are pinned.
`accept` takes connections, `handshake` does handshakes with certificates of clients in a thread,
`connection` reads requests, `budget` bounds memory, `tls_limits` the number of small TLS records,
and `process` sets up the operating system. Nothing here depends on paths or pods. Start with
`accept`.
"""
